import { sql } from 'kysely';
import { lockPartner } from '../accounts/partners.ts';
import type { Mode, Tenant } from '../domain/mode.ts';
import { writeStatement } from '../platform/db/sql.ts';
import { transaction } from '../platform/db/transaction.ts';
import type { CommandContext } from '../requests/command-context.ts';
import { type Author, recordAudit } from '../requests/operator-context.ts';
import type { WebhookEndpointRow } from './endpoint-resource.ts';
import { type EndpointId, pickEndpoints, readEndpoints, shownEndpointColumns } from './reads.ts';
import { generateWebhookSecret, sealEndpointSecret } from './secrets.ts';

/** How long the previous secret keeps signing after a rotation. */
const GRACE_HOURS = 24;

/**
 * Gives endpoints of an account one new secret. For 24 hours the previous one signs as well, in the Standard
 * Webhooks header, which has room for two signatures.
 * @param wanted.endpointId null for the oldest endpoint of each mode
 * @returns no endpoints if there are none
 * @throws Refusal if there is no such account
 */
export function rotateEndpointSecret(
  { orm, ring, actor, request }: CommandContext & Author,
  wanted: { partnerId: string; modes: readonly Mode[]; endpointId: EndpointId },
): Promise<{ endpoints: WebhookEndpointRow[]; secret: string }> {
  const { partnerId, modes, endpointId } = wanted;
  return transaction(orm, async (tx) => {
    await lockPartner(tx, partnerId);
    const secret = generateWebhookSecret();
    const endpoints: WebhookEndpointRow[] = [];
    for (const { id, mode } of pickEndpoints(await readEndpoints(tx, { partnerId, modes }), endpointId)) {
      const sealed = sealEndpointSecret(ring, id, secret);
      const values = { partnerId, mode, endpointId: id, sealed, graceHours: GRACE_HOURS };
      endpoints.push(...(await replaceSecret(tx, values)));
    }
    if (endpoints.length > 0) {
      const rotated = endpoints.map((endpoint) => endpoint.mode);
      recordAudit(tx, {
        actor,
        action: 'webhook-endpoint.rotate-secret',
        subject: partnerId,
        detail: { modes: rotated, endpoints: endpoints.map(({ id }) => id), ...request },
      });
    }
    return { endpoints, secret };
  });
}

const replaceSecret = writeStatement(
  (
    db,
    {
      partnerId,
      mode,
      endpointId,
      sealed,
      graceHours,
    }: Tenant & { endpointId: string; sealed: Buffer; graceHours: number },
  ) =>
    db
      .updateTable('webhook_endpoint')
      .set(({ ref }) => ({
        secret: sealed,
        previous_secret: ref('secret'),
        previous_secret_expires_at: sql<string>`account_now(${partnerId}, ${mode}) + ${graceHours} * interval '1 hour'`,
      }))
      .where('partner_id', '=', partnerId)
      .where('mode', '=', mode)
      .where('id', '=', endpointId)
      .returning(shownEndpointColumns),
);
