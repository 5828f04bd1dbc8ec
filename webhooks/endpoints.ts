import { isDeepStrictEqual } from 'node:util';
import { sql } from 'kysely';
import { holdClock } from '../accounts/clock.ts';
import { lockPartner } from '../accounts/partners.ts';
import { ApiError } from '../domain/api-error.ts';
import { type EventType, MAX_ENDPOINTS } from '../domain/event.ts';
import type { Mode, Tenant } from '../domain/mode.ts';
import type { KeyRing } from '../platform/crypto/key-ring.ts';
import { newId, readIdTime } from '../platform/crypto/new-id.ts';
import { anyOf, readStatement, writeStatement } from '../platform/db/sql.ts';
import { transaction } from '../platform/db/transaction.ts';
import type { CommandContext } from '../requests/command-context.ts';
import { type Author, recordAudit } from '../requests/operator-context.ts';
import type { WebhookEndpointRow } from './endpoint-resource.ts';
import { DISABLED_BY_PARTNER, disableEndpoints, type Endpoints, enableEndpoints } from './endpoint-status.ts';
import { type EndpointId, pickEndpoints, readEndpoint, readEndpoints } from './reads.ts';
import { generateWebhookSecret, openEndpointSecret, sealEndpointSecret } from './secrets.ts';

/** What a partner can choose for an endpoint. What is left out stays as it is. */
interface EndpointSettings {
  /** As `parseWebhookUrl` returns it. */
  url?: string | undefined;
  /** A new endpoint starts without. */
  standardWebhooks?: boolean | undefined;
  /** Null for all types. */
  eventTypes?: readonly EventType[] | null | undefined;
  description?: string | null | undefined;
}

/**
 * Creates another endpoint of an account.
 * @returns the endpoint and its secret
 * @throws ApiError `limit_exceeded`, `webhook_endpoint_url_taken`
 */
export function createEndpoint(
  { orm, ring, actor, request }: CommandContext & Author,
  { partnerId, mode }: Tenant,
  settings: EndpointSettings & { url: string },
): Promise<{ endpoint: WebhookEndpointRow; secret: string }> {
  const { url, standardWebhooks: standardHeaders = false, eventTypes = null, description = null } = settings;
  return transaction(orm, async (tx) => {
    await lockPartner(tx, partnerId);
    const existing = await readEndpoints(tx, { partnerId, modes: [mode] });
    requireFreeUrl(existing, url, null);
    if (existing.length >= MAX_ENDPOINTS) {
      throw new ApiError('limit_exceeded', {
        message: `This account has ${MAX_ENDPOINTS} webhook endpoints in this mode, which is the limit. Delete one first.`,
      });
    }
    const secret = generateWebhookSecret();
    const id = newId('we');
    const sealed = sealEndpointSecret(ring, id, secret);
    await insertEndpoint(tx, {
      id,
      createdAt: readIdTime(id).toISOString(),
      partnerId,
      mode,
      url,
      standardHeaders,
      sealed,
      eventTypes: eventTypes && [...eventTypes],
      description,
    });
    recordAudit(tx, {
      actor,
      action: 'webhook-endpoint.create',
      subject: partnerId,
      detail: { modes: [mode], endpoints: [id], origin: originOf(url), ...request },
    });
    return { endpoint: await readEndpoint(tx, { partnerId, mode }, id), secret };
  });
}

/**
 * Changes an endpoint. If it is enabled, its parked events are sent soon after: the caller notifies the
 * workers.
 * @throws ApiError `webhook_endpoint_not_found`, `webhook_endpoint_url_taken`
 */
export function changeEndpoint(
  { orm, actor, request }: Pick<CommandContext, 'orm'> & Author,
  { partnerId, mode }: Tenant,
  endpointId: string,
  changes: EndpointSettings & { status?: WebhookEndpointRow['status'] | undefined },
): Promise<WebhookEndpointRow> {
  return transaction(orm, async (tx) => {
    const testClock = await holdClock(tx, { partnerId, mode: 'test' });
    await lockPartner(tx, partnerId);
    const endpoint = await readEndpoint(tx, { partnerId, mode }, endpointId);
    const {
      url = endpoint.url,
      eventTypes = endpoint.event_types,
      description = endpoint.description,
    } = changes;
    if (url !== endpoint.url)
      requireFreeUrl(await readEndpoints(tx, { partnerId, modes: [mode] }), url, endpointId);
    const account = { partnerId, modes: [mode], endpointIds: [endpointId] };
    if (changes.status === 'enabled') await enableEndpoints(tx, account);
    await updateEndpoint(tx, {
      partnerId,
      mode,
      endpointId,
      url,
      standardHeaders: changes.standardWebhooks ?? endpoint.standard_headers,
      eventTypes: eventTypes && [...eventTypes],
      description,
    });
    if (changes.status === 'disabled')
      await disableEndpoints(tx, { ...account, reason: DISABLED_BY_PARTNER, testClock });
    const changed = await readEndpoint(tx, { partnerId, mode }, endpointId);
    const settings = SETTINGS.filter((setting) => !isDeepStrictEqual(changed[setting], endpoint[setting]));
    if (settings.length > 0) {
      const { status } = changed;
      recordAudit(tx, {
        actor,
        action: 'webhook-endpoint.update',
        subject: partnerId,
        detail: {
          modes: [mode],
          endpoints: [endpointId],
          settings,
          origin: originOf(url),
          status,
          ...request,
        },
      });
    }
    return changed;
  });
}

/** What of a change the audit log names. */
const SETTINGS = ['url', 'standard_headers', 'event_types', 'description', 'status'] as const;

interface EndpointChange {
  partnerId: string;
  /** Whose oldest endpoints to set. Endpoints of several modes that are created together share a secret. */
  modes: readonly Mode[];
  /** As `parseWebhookUrl` returns it. */
  url: string;
  /** If left out, it stays as it is; a new endpoint starts without. */
  standardWebhooks?: boolean | undefined;
}

/**
 * Sets where an account's oldest endpoint sends events, and enables it: the caller notifies the workers,
 * which send what was parked. An existing endpoint keeps its secret. A new one gets the secret of the other
 * mode if both are set, or else a new secret.
 * @returns the endpoints, and the secret if one of them is new
 * @throws Refusal if there is no such account; ApiError `webhook_endpoint_url_taken`
 */
export function setEndpoint(
  { orm, ring, actor, request }: CommandContext & Author,
  { partnerId, modes, url, standardWebhooks }: EndpointChange,
): Promise<{ endpoints: WebhookEndpointRow[]; secret: string | null }> {
  return transaction(orm, async (tx) => {
    await lockPartner(tx, partnerId);
    const all = await readEndpoints(tx, { partnerId, modes });
    const existing = pickEndpoints(all, null);
    for (const { id, mode } of existing)
      requireFreeUrl(
        all.filter((other) => other.mode === mode),
        url,
        id,
      );
    const endpointIds = existing.map(({ id }) => id);
    await enableEndpoints(tx, { partnerId, modes, endpointIds });
    await setOldest(tx, { partnerId, modes, endpointIds, url, standardHeaders: standardWebhooks ?? null });
    const missing = modes.filter((mode) => !existing.some((endpoint) => endpoint.mode === mode));
    const [known] = await readSecrets(tx, { partnerId, modes, endpointIds });
    const secret = missing.length === 0 ? null : secretFor(ring, known);
    if (secret !== null) {
      const standardHeaders = standardWebhooks ?? existing[0]?.standard_headers ?? false;
      for (const mode of missing) {
        const id = newId('we');
        const sealed = sealEndpointSecret(ring, id, secret);
        const forAll = { eventTypes: null, description: null };
        const createdAt = readIdTime(id).toISOString();
        await insertEndpoint(tx, { id, createdAt, partnerId, mode, url, standardHeaders, sealed, ...forAll });
      }
    }
    const endpoints = pickEndpoints(await readEndpoints(tx, { partnerId, modes }), null);
    if (!isDeepStrictEqual(endpoints, existing)) {
      recordAudit(tx, {
        actor,
        action: 'webhook-endpoint.set',
        subject: partnerId,
        detail: { modes, endpoints: endpoints.map(({ id }) => id), origin: originOf(url), ...request },
      });
    }
    return { endpoints, secret };
  });
}

/**
 * Deletes an endpoint and its secret. What was not delivered there is given up soon after: see
 * `giveUpDeliveries`, for which the caller notifies the workers. What is being sent right now is recorded as
 * it ends.
 * @returns whether there was one
 */
export function removeEndpoint(
  { orm, actor, request }: Pick<CommandContext, 'orm'> & Author,
  { partnerId, mode }: Tenant,
  endpointId: EndpointId,
): Promise<boolean> {
  return transaction(orm, async (tx) => {
    await lockPartner(tx, partnerId);
    const [found] = pickEndpoints(await readEndpoints(tx, { partnerId, modes: [mode] }), endpointId);
    if (found === undefined) return false;
    await deleteReplays(tx, { partnerId, mode, endpointId: found.id });
    await deleteEndpoint(tx, { partnerId, mode, endpointId: found.id });
    recordAudit(tx, {
      actor,
      action: 'webhook-endpoint.delete',
      subject: partnerId,
      detail: { modes: [mode], endpoints: [found.id], origin: originOf(found.url), ...request },
    });
    return true;
  });
}

/**
 * @throws ApiError `webhook_endpoint_url_taken` if another endpoint of the mode than `endpointId` has the URL
 */
function requireFreeUrl(ofMode: readonly WebhookEndpointRow[], url: string, endpointId: EndpointId): void {
  const other = ofMode.find((endpoint) => endpoint.url === url && endpoint.id !== endpointId);
  if (other === undefined) return;
  throw new ApiError('webhook_endpoint_url_taken', {
    message: `The webhook endpoint ${other.id} of this mode has this URL already. Change that one, or use another URL.`,
  });
}

/** Of a URL for the audit log: partners put tokens into its path. */
const originOf = (url: string): string => new URL(url).origin;

function secretFor(ring: KeyRing, known: { id: string; secret: Buffer } | undefined): string {
  return known === undefined ? generateWebhookSecret() : openEndpointSecret(ring, known, known.secret);
}

const readSecrets = readStatement((db, { partnerId, modes, endpointIds }: Endpoints) =>
  db
    .selectFrom('webhook_endpoint')
    .select(['id', 'mode', 'secret'])
    .where('partner_id', '=', partnerId)
    .where('mode', '=', anyOf(modes))
    .where('id', '=', anyOf(endpointIds))
    .orderBy('mode', 'desc'),
);

const setOldest = writeStatement(
  (
    db,
    {
      partnerId,
      modes,
      endpointIds,
      url,
      standardHeaders,
    }: Endpoints & { url: string /** Null leaves it as it is. */; standardHeaders: boolean | null },
  ) =>
    db
      .updateTable('webhook_endpoint')
      .set(({ fn, val }) => ({
        url,
        standard_headers: fn.coalesce(val(standardHeaders), 'standard_headers'),
      }))
      .where('partner_id', '=', partnerId)
      .where('mode', '=', anyOf(modes))
      .where('id', '=', anyOf(endpointIds)),
);

interface Settings extends Tenant {
  url: string;
  standardHeaders: boolean;
  eventTypes: string[] | null;
  description: string | null;
}

const updateEndpoint = writeStatement((db, endpoint: Settings & { endpointId: string }) =>
  db
    .updateTable('webhook_endpoint')
    .set({
      url: endpoint.url,
      standard_headers: endpoint.standardHeaders,
      event_types: endpoint.eventTypes,
      description: endpoint.description,
    })
    .where('partner_id', '=', endpoint.partnerId)
    .where('mode', '=', endpoint.mode)
    .where('id', '=', endpoint.endpointId),
);

const insertEndpoint = writeStatement(
  (
    db,
    endpoint: Settings & {
      id: string;
      /** The secret. */
      sealed: Buffer;
      /** In real time. */
      createdAt: string;
    },
  ) =>
    db.insertInto('webhook_endpoint').values({
      id: endpoint.id,
      partner_id: endpoint.partnerId,
      mode: endpoint.mode,
      url: endpoint.url,
      standard_headers: endpoint.standardHeaders,
      secret: endpoint.sealed,
      event_types: endpoint.eventTypes,
      description: endpoint.description,
      created_at: sql<string>`account_time(${endpoint.partnerId}, ${endpoint.mode}, ${endpoint.createdAt}::timestamptz)`,
    }),
);

const deleteReplays = writeStatement((db, { partnerId, mode, endpointId }: Tenant & { endpointId: string }) =>
  db
    .deleteFrom('webhook_replay')
    .where('partner_id', '=', partnerId)
    .where('mode', '=', mode)
    .where('endpoint_id', '=', endpointId),
);

const deleteEndpoint = writeStatement(
  (db, { partnerId, mode, endpointId }: Tenant & { endpointId: string }) =>
    db
      .deleteFrom('webhook_endpoint')
      .where('partner_id', '=', partnerId)
      .where('mode', '=', mode)
      .where('id', '=', endpointId),
);
