import { query } from '../../db/sql.ts';
import { transaction } from '../../db/transaction.ts';
import type { Mode } from '../../domain/mode.ts';
import { type OperatorContext, recordAudit } from '../accounts/operator-context.ts';
import { openEndpointSecret, sealEndpointSecret } from './endpoint-secret.ts';

interface SealedRow {
  partner_id: string;
  mode: Mode;
  secret: Buffer;
  previous_secret: Buffer | null;
}

/**
 * Seals under the ring's current key whatever webhook secret lies under another one. The secrets stay what they are.
 * One endpoint is one transaction; run again it goes on where it was.
 * @returns how many endpoints had such a secret
 * @throws Error where a secret's key is not in the ring.
 */
export async function resealEndpointSecrets({ orm, ring, actor }: OperatorContext): Promise<number> {
  const found = await query<Pick<SealedRow, 'partner_id' | 'mode'>>(
    orm.em.fork(),
    `SELECT partner_id, mode FROM webhook_endpoint WHERE ${UNDER_ANOTHER_KEY} ORDER BY partner_id, mode`,
    [ring.primaryId],
  );
  let resealed = 0;
  for (const { partner_id: partnerId, mode } of found) {
    resealed += await transaction(orm, async (tx) => {
      const [row] = await query<SealedRow>(
        tx,
        `SELECT partner_id, mode, secret, previous_secret FROM webhook_endpoint
         WHERE ${UNDER_ANOTHER_KEY} AND partner_id = $2 AND mode = $3 FOR NO KEY UPDATE`,
        [ring.primaryId, partnerId, mode],
      );
      if (row === undefined) return 0;
      const reseal = (sealed: Buffer) => sealEndpointSecret(ring, row, openEndpointSecret(ring, row, sealed));
      await query(
        tx,
        'UPDATE webhook_endpoint SET secret = $3, previous_secret = $4 WHERE partner_id = $1 AND mode = $2',
        [partnerId, mode, reseal(row.secret), row.previous_secret && reseal(row.previous_secret)],
      );
      recordAudit(tx, actor, 'webhook-endpoint.reseal', partnerId, { modes: [mode] });
      return 1;
    });
  }
  return resealed;
}

// A sealed value begins with the length of its key's id and the id (crypto/key-ring.ts).
const keyIdOf = (column: string) => `convert_from(substr(${column}, 2, get_byte(${column}, 0)), 'UTF8')`;
const UNDER_ANOTHER_KEY = `(${keyIdOf('secret')} <> $1 OR ${keyIdOf('previous_secret')} <> $1)`;
