import { sql } from 'kysely';
import { generateWebhookSecret, openEndpointSecret, sealEndpointSecret } from '../../crypto/webhooks.ts';
import { readStatement, writeStatement } from '../../db/sql.ts';
import { transaction } from '../../db/transaction.ts';
import type { Mode, Tenant } from '../../domain/mode.ts';
import type { WebhookEndpointRow } from '../../resources/webhook-endpoint.ts';
import { type OperatorContext, recordAudit } from '../accounts/operator-context.ts';
import { lockPartner } from '../accounts/partners.ts';
import type { CommandContext } from '../command-context.ts';
import { shownOfEndpoint } from './read-endpoints.ts';

/** How long the previous secret keeps signing after a rotation. */
const GRACE_HOURS = 24;

/**
 * Gives an account's endpoints one new secret. For 24 hours the previous one signs as well, in the Standard Webhooks
 * header, which has room for two signatures.
 * @param context.actor the operator, for the audit; left out if the partner does it
 * @returns no endpoints if there are none
 * @throws Refusal if there is no such account
 */
export function rotateEndpointSecret(
  { orm, ring, actor }: CommandContext & { actor?: string },
  partnerId: string,
  modes: readonly Mode[],
): Promise<{ endpoints: WebhookEndpointRow[]; secret: string }> {
  return transaction(orm, async (tx) => {
    await lockPartner(tx, partnerId);
    const secret = generateWebhookSecret();
    const endpoints: WebhookEndpointRow[] = [];
    for (const mode of modes) {
      const sealed = sealEndpointSecret(ring, { partner_id: partnerId, mode }, secret);
      endpoints.push(...(await replaceSecret(tx, { partnerId, mode, sealed, graceHours: GRACE_HOURS })));
    }
    if (actor !== undefined && endpoints.length > 0) {
      const rotated = endpoints.map((endpoint) => endpoint.mode);
      recordAudit(tx, actor, 'webhook-endpoint.rotate-secret', partnerId, { modes: rotated });
    }
    return { endpoints, secret };
  });
}

const replaceSecret = writeStatement(
  (db, { partnerId, mode, sealed, graceHours }: Tenant & { sealed: Buffer; graceHours: number }) =>
    db
      .updateTable('webhook_endpoint')
      .set(({ ref }) => ({
        secret: sealed,
        previous_secret: ref('secret'),
        previous_secret_expires_at: sql<string>`now() + ${graceHours} * interval '1 hour'`,
      }))
      .where('partner_id', '=', partnerId)
      .where('mode', '=', mode)
      .returning(shownOfEndpoint),
);

/**
 * Seals every webhook secret that is under another key again, under the ring's current key. The secrets don't change. Each
 * endpoint has its own transaction; if it is interrupted, run it again to continue.
 * @returns how many endpoints had such a secret
 * @throws Error if a secret's key is not in the ring
 */
export async function resealEndpointSecrets({ orm, ring, actor }: OperatorContext): Promise<number> {
  const currentKeyId = ring.primaryId;
  const found = await findUnderAnotherKey(orm.em.fork(), { currentKeyId });
  let resealed = 0;
  for (const { partner_id: partnerId, mode } of found) {
    resealed += await transaction(orm, async (tx) => {
      const [row] = await lockUnderAnotherKey(tx, { currentKeyId, partnerId, mode });
      if (row === undefined) return 0;
      const reseal = (sealed: Buffer) => sealEndpointSecret(ring, row, openEndpointSecret(ring, row, sealed));
      const previous = row.previous_secret && reseal(row.previous_secret);
      await storeSecrets(tx, { partnerId, mode, current: reseal(row.secret), previous });
      recordAudit(tx, actor, 'webhook-endpoint.reseal', partnerId, { modes: [mode] });
      return 1;
    });
  }
  return resealed;
}

/** A sealed value begins with the length of its key's id, and the id (crypto/key-ring.ts). */
const keyIdOf = (column: 'secret' | 'previous_secret') =>
  sql<string>`convert_from(substr(${sql.ref(column)}, 2, get_byte(${sql.ref(column)}, 0)), 'UTF8')`;

const underAnotherKey = (currentKeyId: string) =>
  sql<boolean>`(${keyIdOf('secret')} <> ${currentKeyId} OR ${keyIdOf('previous_secret')} <> ${currentKeyId})`;

const findUnderAnotherKey = readStatement((db, { currentKeyId }: { currentKeyId: string }) =>
  db
    .selectFrom('webhook_endpoint')
    .select(['partner_id', 'mode'])
    .where(underAnotherKey(currentKeyId))
    .orderBy('partner_id')
    .orderBy('mode'),
);

const lockUnderAnotherKey = writeStatement(
  (db, { currentKeyId, partnerId, mode }: Tenant & { currentKeyId: string }) =>
    db
      .selectFrom('webhook_endpoint')
      .select(['partner_id', 'mode', 'secret', 'previous_secret'])
      .where('partner_id', '=', partnerId)
      .where('mode', '=', mode)
      .where(underAnotherKey(currentKeyId))
      .forNoKeyUpdate(),
);

const storeSecrets = writeStatement(
  (db, { partnerId, mode, current, previous }: Tenant & { current: Buffer; previous: Buffer | null }) =>
    db
      .updateTable('webhook_endpoint')
      .set({ secret: current, previous_secret: previous })
      .where('partner_id', '=', partnerId)
      .where('mode', '=', mode),
);
