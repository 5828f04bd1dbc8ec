import { sql } from 'kysely';
import type { KeyRing } from '../../crypto/key-ring.ts';
import { generateWebhookSecret, openEndpointSecret, sealEndpointSecret } from '../../crypto/webhooks.ts';
import type { Orm } from '../../db/orm.ts';
import { anyOf, writeStatement } from '../../db/sql.ts';
import { transaction } from '../../db/transaction.ts';
import type { Mode, Tenant } from '../../domain/mode.ts';
import type { WebhookEndpointRow } from '../../resources/webhook-endpoint.ts';
import { recordAudit } from '../accounts/operator-context.ts';
import { lockPartner } from '../accounts/partners.ts';
import type { CommandContext } from '../command-context.ts';
import { enableEndpoints } from './endpoint-status.ts';
import { readEndpoints } from './read-endpoints.ts';

interface EndpointChange {
  partnerId: string;
  /** The endpoints to set. Endpoints of several modes that are created together share a secret. */
  modes: readonly Mode[];
  /** As `parseWebhookUrl` returns it. */
  url: string;
  /** If left out, it stays as it is; a new endpoint starts without. */
  standardWebhooks?: boolean | undefined;
}

/**
 * Sets where an account's events go, and enables the endpoint: parked events are sent. An existing endpoint keeps its
 * secret. A new one gets the secret of the other mode if both are set, or else a new secret.
 * @param context.actor the operator, for the audit; left out if the partner does it
 * @returns the endpoints, and the secret if one of them is new
 * @throws Refusal if there is no such account
 */
export function setEndpoint(
  { orm, ring, actor }: CommandContext & { actor?: string },
  { partnerId, modes, url, standardWebhooks }: EndpointChange,
): Promise<{ endpoints: WebhookEndpointRow[]; secret: string | null }> {
  return transaction(orm, async (tx) => {
    await lockPartner(tx, partnerId);
    const existing = await updateEndpoints(tx, {
      partnerId,
      modes,
      url,
      standardHeaders: standardWebhooks ?? null,
    });
    const missing = modes.filter((mode) => !existing.some((endpoint) => endpoint.mode === mode));
    const secret = missing.length === 0 ? null : secretFor(ring, partnerId, existing);
    if (secret !== null) {
      const standardHeaders = standardWebhooks ?? existing[0]?.standard_headers ?? false;
      for (const mode of missing) {
        const sealed = sealEndpointSecret(ring, { partner_id: partnerId, mode }, secret);
        await insertEndpoint(tx, { partnerId, mode, url, standardHeaders, sealed });
      }
    }
    await enableEndpoints(tx, partnerId, modes);
    if (actor !== undefined) {
      // Not the whole URL: partners put tokens into its path.
      recordAudit(tx, {
        actor,
        action: 'webhook-endpoint.set',
        subject: partnerId,
        detail: { modes, origin: new URL(url).origin },
      });
    }
    return { endpoints: await readEndpoints(tx, { partnerId, modes }), secret };
  });
}

/**
 * Deletes an endpoint and its secret. Its pending events are parked as they come up; later events have no endpoint.
 * @returns whether there was one
 */
export function removeEndpoint(orm: Orm, { partnerId, mode }: Tenant): Promise<boolean> {
  return transaction(orm, async (tx) => {
    await lockPartner(tx, partnerId);
    const removed = await deleteEndpoint(tx, { partnerId, mode });
    return removed.length > 0;
  });
}

type ExistingEndpoint = Awaited<ReturnType<typeof updateEndpoints>>[number];

function secretFor(ring: KeyRing, partner_id: string, [known]: ExistingEndpoint[]): string {
  if (known === undefined) return generateWebhookSecret();
  return openEndpointSecret(ring, { partner_id, mode: known.mode }, known.secret);
}

interface EndpointSettings {
  partnerId: string;
  modes: readonly Mode[];
  url: string;
  /** Null leaves it as it is. */
  standardHeaders: boolean | null;
}

const updateEndpoints = writeStatement((db, { partnerId, modes, url, standardHeaders }: EndpointSettings) =>
  db
    .updateTable('webhook_endpoint')
    .set(({ fn, val }) => ({
      url,
      standard_headers: fn.coalesce(val(standardHeaders), 'standard_headers'),
    }))
    .where('partner_id', '=', partnerId)
    .where('mode', '=', anyOf(modes))
    .returning(['mode', 'secret', 'standard_headers']),
);

interface NewEndpoint {
  partnerId: string;
  mode: Mode;
  url: string;
  standardHeaders: boolean;
  /** The secret. */
  sealed: Buffer;
}

const insertEndpoint = writeStatement((db, endpoint: NewEndpoint) =>
  db.insertInto('webhook_endpoint').values({
    partner_id: endpoint.partnerId,
    mode: endpoint.mode,
    url: endpoint.url,
    standard_headers: endpoint.standardHeaders,
    secret: endpoint.sealed,
    created_at: sql<string>`account_now(${endpoint.partnerId}, ${endpoint.mode})`,
  }),
);

const deleteEndpoint = writeStatement((db, { partnerId, mode }: Tenant) =>
  db
    .deleteFrom('webhook_endpoint')
    .where('partner_id', '=', partnerId)
    .where('mode', '=', mode)
    .returning('mode'),
);
