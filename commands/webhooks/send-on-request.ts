import { type RawBuilder, sql } from 'kysely';
import { heldClock } from '../../db/account-clock.ts';
import type { Orm } from '../../db/orm.ts';
import { anyOf, readStatement, type Transactor, writeStatement } from '../../db/sql.ts';
import type { Tables } from '../../db/tables.ts';
import { tokenBucket } from '../../db/token-bucket.ts';
import { transaction } from '../../db/transaction.ts';
import type { AccountClock } from '../../domain/account-clock.ts';
import { ApiError } from '../../domain/api-error.ts';
import { EVENTS_KEPT_DAYS } from '../../domain/event.ts';
import type { Tenant } from '../../domain/mode.ts';
import type { EventType } from '../../resources/event-types.ts';
import { presentWebhookEndpoint } from '../../resources/webhook-endpoint.ts';
import { recordAudit } from '../accounts/operator-context.ts';
import { newEvent } from './new-event.ts';
import { readEndpoints } from './read-endpoints.ts';

/** How many events a partner can request: one per second, in bursts of up to 60. */
const ALLOWANCE = tokenBucket('allowance_full_at', { size: 60, perSecond: 1 });
const PING: EventType = 'ping';

/** Who requests that events are sent again. */
type Requester =
  /** A partner, within its allowance: only its own events of the last 30 days. */
  | { by: 'partner'; tenant: Tenant }
  /** An operator. `audit` is null if an earlier call has recorded the whole request. */
  | { by: 'operator'; actor: string; audit: { subject: string; detail: Record<string, unknown> } | null }
  /** The event's workflow, which is notified of the result, after a signal. `sentBy` is whom Temporal recorded as its sender. */
  | { by: 'workflow'; sentBy: string | null };

/**
 * Sends events again at once, whatever their status, and restarts their retry schedule. The relay makes the attempts, within
 * the limits of their endpoints. A pending event stays as it is.
 * @returns how many of these events there are; old ones are pruned
 * @throws ApiError for a partner: `event_not_found`, `webhook_endpoint_not_found`, `invalid_state` (the endpoint is
 *   disabled), `rate_limited`
 */
export function requeueEvents(orm: Orm, eventIds: readonly string[], requester: Requester): Promise<number> {
  return transaction(orm, async (tx) => {
    if (requester.by === 'partner') {
      for (const eventId of eventIds) await admit(tx, requester.tenant, eventId);
    }
    if (requester.by === 'operator' && requester.audit !== null) {
      const { subject, detail } = requester.audit;
      recordAudit(tx, { actor: requester.actor, action: 'webhook.requeue', subject, detail });
    }
    const found = await requeue(tx, { eventIds, hasWorkflow: requester.by === 'workflow' });
    if (requester.by === 'workflow') {
      const { sentBy } = requester;
      for (const { event_id } of found)
        recordAudit(tx, {
          actor: 'temporal',
          action: 'webhook.requeue',
          subject: event_id,
          detail: { identity: sentBy },
        });
    }
    return found.length;
  });
}

/** @throws ApiError `event_not_found` if the event is not the partner's or is too old; see {@link takeSendingTurn} */
async function admit(tx: Transactor, { partnerId, mode }: Tenant, eventId: string): Promise<void> {
  const [event] = await findEvent(tx, { partnerId, mode, eventId, keptDays: EVENTS_KEPT_DAYS });
  if (event === undefined) throw new ApiError('event_not_found');
  await takeSendingTurn(tx, { partnerId, mode });
}

const findEvent = readStatement(
  (db, { partnerId, mode, eventId, keptDays }: Tenant & { eventId: string; keptDays: number }) =>
    db
      .selectFrom('event')
      .select('id')
      .where('id', '=', eventId)
      .where('partner_id', '=', partnerId)
      .where('mode', '=', mode)
      // By its id, which has the real time.
      .where('id', '>', sql<string>`'evt_' || id_time(now() - ${keptDays} * interval '1 day')`),
);

/** This value, or the column as it is if the event is pending. */
const unlessPending = <Value>(column: keyof Tables['delivery'], value: RawBuilder<Value>) =>
  sql<Value>`CASE WHEN status = 'pending' THEN ${sql.ref(column)} ELSE ${value} END`;

// Row "requeued" of the table in domain/event.ts.
const requeue = writeStatement(
  (db, { eventIds, hasWorkflow }: { eventIds: readonly string[]; hasWorkflow: boolean }) =>
    db
      .updateTable('delivery')
      .set({
        status: 'pending',
        schedule_attempts: unlessPending('schedule_attempts', sql.lit(0)),
        lease_expires_at: unlessPending('lease_expires_at', sql<string>`'-infinity'`),
        next_attempt_at: unlessPending(
          'next_attempt_at',
          sql<string>`account_time(partner_id, mode, clock_timestamp())`,
        ),
        workflow: sql<'told'>`CASE WHEN ${hasWorkflow}::boolean THEN 'told' ELSE workflow END`,
      })
      .where('event_id', '=', anyOf(eventIds))
      .returning('event_id'),
  { acrossTenants: 'id' },
);

/**
 * Writes an event that shows where it is sent, which the relay sends like any other.
 * @returns its id
 * @throws ApiError `webhook_endpoint_not_found`, `invalid_state` (the endpoint is disabled), `rate_limited`
 */
export function sendPing(orm: Orm, tenant: Tenant): Promise<string> {
  const { partnerId, mode } = tenant;
  return transaction(orm, async (tx) => {
    const clock = await takeSendingTurn(tx, tenant);
    const [endpoint] = await readEndpoints(tx, { partnerId, modes: [mode] });
    const data = { webhook_endpoint: endpoint && presentWebhookEndpoint(endpoint) };
    const { id, created, body } = newEvent({ type: PING, mode, data, clock });
    await insertPing(tx, { partnerId, mode, id, created, body });
    return id;
  });
}

const insertPing = writeStatement(
  (db, { partnerId, mode, id, created, body }: Tenant & { id: string; created: string; body: string }) =>
    db.insertInto('event').values({ id, partner_id: partnerId, mode, type: PING, body, created_at: created }),
);

/**
 * Takes one event off a partner's allowance, in the caller's transaction, which then holds the lock on the endpoint's row.
 * @returns the account's clock, which the transaction holds, too
 * @throws ApiError `webhook_endpoint_not_found`, `invalid_state` (the endpoint is disabled), `rate_limited`
 */
async function takeSendingTurn(tx: Transactor, { partnerId, mode }: Tenant): Promise<AccountClock> {
  const [endpoint] = await lockEndpoint(tx, { partnerId, mode });
  if (endpoint === undefined) throw new ApiError('webhook_endpoint_not_found');
  if (endpoint.status === 'disabled') {
    throw new ApiError('invalid_state', {
      message: 'The webhook endpoint is disabled. Enable it with PUT /webhook-endpoint.',
    });
  }
  if (endpoint.wait_seconds > 0) {
    throw new ApiError('rate_limited', {
      message:
        'Too many events requested: the limit is one per second, in bursts of up to 60. Retry after the number of seconds in Retry-After.',
      retryAfterSeconds: endpoint.wait_seconds,
    });
  }
  await takeOne(tx, { partnerId, mode });
  return endpoint.clock;
}

const lockEndpoint = writeStatement((db, { partnerId, mode }: Tenant) =>
  db
    .selectFrom('webhook_endpoint')
    .select(['status', ALLOWANCE.waitSeconds.as('wait_seconds')])
    .select(heldClock(sql.ref('partner_id'), sql.ref('mode')).as('clock'))
    .where('partner_id', '=', partnerId)
    .where('mode', '=', mode)
    .forNoKeyUpdate(),
);

const takeOne = writeStatement((db, { partnerId, mode }: Tenant) =>
  db
    .updateTable('webhook_endpoint')
    .set({ allowance_full_at: ALLOWANCE.afterTaking(sql.lit(1)) })
    .where('partner_id', '=', partnerId)
    .where('mode', '=', mode),
);
