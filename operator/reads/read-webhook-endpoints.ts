import { Refusal } from '../../commands/idempotency/refusal.ts';
import { readEndpoints } from '../../commands/webhooks/read-endpoints.ts';
import type { Orm } from '../../db/orm.ts';
import type { Mode } from '../../domain/mode.ts';
import type { WebhookEndpointRow } from '../../resources/webhook-endpoint.ts';
import { readPartner } from './partners.ts';

/** An account's endpoints in these modes, test before live. @throws Refusal where there is no such account, or none of them. */
export async function readWebhookEndpoints(
  orm: Orm,
  partnerId: string,
  modes: readonly Mode[],
): Promise<WebhookEndpointRow[]> {
  await readPartner(orm, partnerId);
  const rows = await readEndpoints(orm.em.fork(), partnerId, modes);
  return requireEndpoints(rows, partnerId, modes);
}

/** @throws Refusal where there are none. */
export function requireEndpoints(
  rows: WebhookEndpointRow[],
  partnerId: string,
  modes: readonly Mode[],
): WebhookEndpointRow[] {
  if (rows.length > 0) return rows;
  throw new Refusal(
    `${partnerId} has no webhook endpoint for ${modes.join(' or ')} mode: create one with ` +
      `"operator webhook-endpoint set ${partnerId} --url U".`,
  );
}
