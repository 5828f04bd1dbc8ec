import type { EntityManager } from '@mikro-orm/postgresql';
import { ENDPOINT_COLUMNS } from '../db/endpoint-columns.ts';
import type { KeyRing } from '../db/key-ring.ts';
import { query } from '../db/sql.ts';
import { transaction } from '../db/transaction.ts';
import { generateWebhookSecret } from '../db/webhook-secret.ts';
import type { Mode } from '../domain/mode.ts';
import type { WebhookEndpointRow } from '../domain/webhook-endpoint-resource.ts';
import type { CommandContext } from './command-context.ts';
import { enableEndpoints } from './enable-endpoints.ts';
import { openEndpointSecret, sealEndpointSecret } from './endpoint-secret.ts';
import { lockPartner } from './lock-partner.ts';
import { recordAudit } from './operator-context.ts';

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
    const existing = await query<ExistingEndpoint>(
      tx,
      `UPDATE webhook_endpoint SET url = $3, standard_headers = coalesce($4, standard_headers)
       WHERE partner_id = $1 AND mode = ANY ($2) RETURNING mode, secret, standard_headers`,
      [partnerId, modes, url, standardWebhooks ?? null],
    );
    const missing = modes.filter((mode) => !existing.some((endpoint) => endpoint.mode === mode));
    const secret = missing.length === 0 ? null : secretFor(ring, partnerId, existing);
    if (secret !== null) {
      const standardHeaders = standardWebhooks ?? existing[0]?.standard_headers ?? false;
      for (const mode of missing)
        await insertEndpoint(tx, ring, { partnerId, mode, url, standardHeaders, secret });
    }
    await enableEndpoints(tx, partnerId, modes);
    if (actor !== undefined) {
      // Not the whole URL: partners put tokens into its path.
      recordAudit(tx, actor, 'webhook-endpoint.set', partnerId, { modes, origin: new URL(url).origin });
    }
    return { endpoints: await readEndpoints(tx, partnerId, modes), secret };
  });
}

interface ExistingEndpoint {
  mode: Mode;
  secret: Buffer;
  standard_headers: boolean;
}

function secretFor(ring: KeyRing, partner_id: string, [known]: ExistingEndpoint[]): string {
  if (known === undefined) return generateWebhookSecret();
  return openEndpointSecret(ring, { partner_id, mode: known.mode }, known.secret);
}

async function insertEndpoint(
  tx: EntityManager,
  ring: KeyRing,
  endpoint: { partnerId: string; mode: Mode; url: string; standardHeaders: boolean; secret: string },
): Promise<void> {
  const { partnerId, mode, url, standardHeaders, secret } = endpoint;
  await query(
    tx,
    `INSERT INTO webhook_endpoint (partner_id, mode, url, standard_headers, secret) VALUES ($1, $2, $3, $4, $5)`,
    [
      partnerId,
      mode,
      url,
      standardHeaders,
      sealEndpointSecret(ring, { partner_id: partnerId, mode }, secret),
    ],
  );
}

const readEndpoints = (tx: EntityManager, partnerId: string, modes: readonly Mode[]) =>
  query<WebhookEndpointRow>(
    tx,
    `SELECT ${ENDPOINT_COLUMNS} FROM webhook_endpoint WHERE partner_id = $1 AND mode = ANY ($2) ORDER BY mode DESC`,
    [partnerId, modes],
  );
