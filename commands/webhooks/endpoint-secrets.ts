import { sql } from 'kysely';
import { generateWebhookSecret, sealEndpointSecret } from '../../crypto/webhooks.ts';
import { writeStatement } from '../../db/sql.ts';
import { transaction } from '../../db/transaction.ts';
import type { Mode, Tenant } from '../../domain/mode.ts';
import type { WebhookEndpointRow } from '../../resources/webhook-endpoint.ts';
import { recordAudit } from '../accounts/operator-context.ts';
import { lockPartner } from '../accounts/partners.ts';
import type { CommandContext } from '../command-context.ts';
import { shownEndpointColumns } from './read-endpoints.ts';

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
      recordAudit(tx, {
        actor,
        action: 'webhook-endpoint.rotate-secret',
        subject: partnerId,
        detail: { modes: rotated },
      });
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
        previous_secret_expires_at: sql<string>`account_now(${partnerId}, ${mode}) + ${graceHours} * interval '1 hour'`,
      }))
      .where('partner_id', '=', partnerId)
      .where('mode', '=', mode)
      .returning(shownEndpointColumns),
);
