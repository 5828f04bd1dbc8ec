import type { KeyRing } from '../../crypto/key-ring.ts';
import { generateWebhookSecret } from '../../crypto/webhook-signing.ts';
import { anyOf, writeStatement } from '../../db/sql.ts';
import { transaction } from '../../db/transaction.ts';
import type { Mode } from '../../domain/mode.ts';
import type { WebhookEndpointRow } from '../../resources/webhook-endpoint.ts';
import { recordAudit } from '../accounts/operator-context.ts';
import { lockPartner } from '../accounts/partners.ts';
import type { CommandContext } from '../command-context.ts';
import { enableEndpoints } from './enable-endpoints.ts';
import { openEndpointSecret, sealEndpointSecret } from './endpoint-secret.ts';
import { readEndpoints } from './read-endpoints.ts';

export interface EndpointChange {
  partnerId: string;
  /** The endpoints to set: those of several modes that are made together share a secret. */
  modes: readonly Mode[];
  /** As `parseWebhookUrl` gives it. */
  url: string;
  /** Left out: as it was, and off at first. */
  standardWebhooks?: boolean | undefined;
}

/**
 * Says where an account's events go, and enables it: what was parked is sent. An endpoint that exists keeps its secret;
 * one that doesn't takes that of the other mode where both are set, else a new one.
 * @param context.actor the operator, for the audit; left out where the partner does it
 * @returns the endpoints, and the secret where one of them was made
 * @throws Refusal where there is no such account.
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
      recordAudit(tx, actor, 'webhook-endpoint.set', partnerId, { modes, origin: new URL(url).origin });
    }
    return { endpoints: await readEndpoints(tx, partnerId, modes), secret };
  });
}

interface EndpointSettings {
  partnerId: string;
  modes: readonly Mode[];
  url: string;
  /** Null: as it is. */
  standardHeaders: boolean | null;
}

type ExistingEndpoint = Awaited<ReturnType<typeof updateEndpoints>>[number];

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

function secretFor(ring: KeyRing, partner_id: string, [known]: ExistingEndpoint[]): string {
  if (known === undefined) return generateWebhookSecret();
  return openEndpointSecret(ring, { partner_id, mode: known.mode }, known.secret);
}

interface NewEndpoint {
  partnerId: string;
  mode: Mode;
  url: string;
  standardHeaders: boolean;
  /** Its secret. */
  sealed: Buffer;
}

const insertEndpoint = writeStatement((db, endpoint: NewEndpoint) =>
  db.insertInto('webhook_endpoint').values({
    partner_id: endpoint.partnerId,
    mode: endpoint.mode,
    url: endpoint.url,
    standard_headers: endpoint.standardHeaders,
    secret: endpoint.sealed,
  }),
);
