import { sql } from 'kysely';
import { readPartner } from '../accounts/reads.ts';
import { DeliveryStatus, EventType } from '../domain/event.ts';
import { Refusal } from '../domain/refusal.ts';
import { WrongUsage } from '../operator/errors.ts';
import { Since, Text } from '../operator/flag-values.ts';
import type { Session } from '../operator/session.ts';
import {
  argument,
  flag,
  list,
  type Noun,
  oneOf,
  optionalArgument,
  type Tools,
  toggle,
  verb,
} from '../operator/verbs.ts';
import { lowestId } from '../platform/crypto/new-id.ts';
import { notifyEvents } from '../platform/db/notifications.ts';
import type { Orm } from '../platform/db/orm.ts';
import { readStatement } from '../platform/db/sql.ts';
import type { DeliveryKey } from './deliveries.ts';
import { readWebhook, readWebhooks, type WebhookDetail } from './reads.ts';
import { MAX_ATTEMPTS_SHOWN } from './resource.ts';
import { findTargets, requeueDeliveries } from './send-on-request.ts';

const SINCE = flag('<time>', 'only those created since then: 24h, 2026-11-20 or 2026-11-20T08:00:00Z', Since);
const status = (help: string) => flag('<status>', help, oneOf(DeliveryStatus.options));

/** @param readCard throws if there is no such card */
export const webhookNoun = (readCard: (orm: Orm, cardId: string) => Promise<unknown>): Noun => ({
  list: list({
    about: 'the events of the last 30 days, newest first, a line for each endpoint',
    takes: {
      status: status('only those with this status'),
      partner: flag('<id>', 'only those of this partner', Text(100)),
      card: flag('<id>', 'only what is about this card', Text(100)),
      type: flag('<type>', 'only events of this type, such as card.issued', oneOf(EventType.options)),
      endpoint: flag('<id>', 'only what goes to this endpoint', Text(100)),
      since: SINCE,
    },
    examples: [
      '--status given_up',
      '--partner prt_01k0… --since 24h',
      '--card card_01k0… --type card.transaction.created',
    ],
    columns: 'created id endpoint_id partner_name mode type status attempt_count next_attempt_at last_error',
    async read(orm, filter) {
      if (filter.card !== null) await readCard(orm, filter.card);
      return readWebhooks(orm, filter);
    },
    note: 'See all of one with "operator webhook show ID".',
  }),

  show: verb({
    about: `one event with the newest ${MAX_ATTEMPTS_SHOWN} attempts to send it, the responses, and its workflow`,
    takes: {
      event: argument('id of the event'),
      endpoint: flag('<id>', 'the attempts at this endpoint (default: the oldest it is for)', Text(100)),
    },
    examples: ['evt_01k0…'],
    async run({ event: eventId, endpoint: endpointId }, { session }) {
      const value = await readWebhook(await session.orm(), session.keys(), { eventId, endpointId });
      return { value: { ...value, workflow_status: await session.workflowStatus(value.workflow_id) } };
    },
  }),

  requeue: verb({
    about: "send one event again now, or all of a partner's events that were given up or parked",
    takes: {
      event: optionalArgument('id of the event'),
      partner: flag('<id>', "all of this partner's events, after you confirm", Text(100)),
      endpoint: flag('<id>', 'only to this endpoint (default: to each it is for)', Text(100)),
      since: SINCE,
      status: status('with --partner: those with this status (default: given_up and parked)'),
      yes: toggle('with --partner: do not ask for confirmation'),
    },
    examples: [
      'evt_01k0…',
      '--partner prt_01k0… --since 24h',
      '--partner prt_01k0… --status no_endpoint --yes',
    ],
    async run({ event: eventId, partner: partnerId, endpoint: endpointId, since, status, yes }, tools) {
      if (eventId !== null && partnerId === null) {
        if (since !== null || status !== null || yes)
          throw new WrongUsage('--since, --status and --yes go with --partner');
        const value = await requeueWebhook(tools.session, { eventId, endpointId });
        const note =
          'Workers send it within seconds. If that fails, the retry schedule starts over: ' +
          `"operator webhook show ${value.id}" has the attempts.`;
        return { value, note };
      }
      if (partnerId === null || eventId !== null)
        throw new WrongUsage('give the id of an event, or --partner');
      if (status === 'pending') throw new WrongUsage('--status pending: these events are already being sent');
      const statuses = status === null ? (['given_up', 'parked'] as const) : [status];
      const value = await requeueWebhooks(tools, { partnerId, endpointId, statuses, since }, yes);
      const note =
        value.requeued === 0
          ? 'There are no events to send again.'
          : 'Workers send them, as fast as each endpoint takes them. If that fails, the retry schedule starts over: ' +
            `"operator webhook list --partner ${partnerId}" shows how far they are.`;
      return { value, note };
    },
  }),
});

const PAGE = 500;

/**
 * Sends one event again, at once: to each endpoint that it is for, or to those that want it now if it is for
 * none.
 * @param wanted.endpointId only to this one, even if the event is not for it; null: see above
 * @returns the event as it is then
 * @throws Refusal if there is no such event, or no enabled endpoint for it
 */
async function requeueWebhook(
  session: Session,
  { eventId, endpointId }: { eventId: string; endpointId: string | null },
): Promise<WebhookDetail> {
  const orm = await session.orm();
  const event = await readWebhook(orm, session.keys(), { eventId, endpointId: null });
  const account = { partnerId: event.partner_id, mode: event.mode };
  const { all, targets } = await findTargets(orm.em.fork(), account, { eventId, endpointId });
  const enabled = targets.filter(({ status }) => status === 'enabled');
  if (enabled.length === 0) {
    const verb = all.length === 0 ? 'set' : 'enable';
    throw new Refusal(
      `${eventId} has no enabled endpoint: run "operator webhook-endpoint ${verb} ${event.partner_id}` +
        `${verb === 'set' ? ' --url U' : ''} --mode ${event.mode}" first.`,
    );
  }
  const { actor } = await session.operator();
  const detail = { status: event.status, endpoints: enabled.map(({ id }) => id) };
  const deliveries = enabled.map(({ id }) => ({ eventId, endpointId: id }));
  await requeueDeliveries(orm, deliveries, { actor, audit: { subject: eventId, detail } });
  await notifyEvents(orm);
  return readWebhook(orm, session.keys(), { eventId, endpointId });
}

/** Which of an account's events to send again. */
interface Wanted {
  partnerId: string;
  /** Only to this endpoint; null for each that an event is for. */
  endpointId: string | null;
  statuses: readonly DeliveryStatus[];
  since: Date | null;
}

/**
 * Sends many of an account's events again, after a person has seen how many and confirmed. Events that are
 * created later are left out.
 * @param yes whether somebody agreed beforehand
 * @throws Refusal if there is no such account, or nobody agreed
 */
async function requeueWebhooks(
  { session, err, confirm }: Tools,
  { partnerId, endpointId, statuses, since }: Wanted,
  yes: boolean,
) {
  const orm = await session.orm();
  await readPartner(orm, partnerId);
  const { count, readPage } = statementsFor(statuses);
  const [from, until] = [lowestId('evt', since ?? new Date(0)), lowestId('evt', new Date())];
  const range = { partnerId, endpointId, from, until };
  const counts = await count(orm.em.fork(), range);
  const sendable = counts.filter(({ has_endpoint }) => has_endpoint);
  const byStatus = Object.fromEntries(sendable.map(({ status, events }) => [status, events]));
  const total = sendable.reduce((sum, { events }) => sum + events, 0);
  const waiting = counts.reduce((sum, { events }) => sum + events, 0) - total;
  if (waiting > 0)
    err(`${waiting} more have no enabled endpoint: see "operator webhook-endpoint show ${partnerId}".\n`);
  if (total === 0) return { partner_id: partnerId, requeued: 0, by_status: {} };
  const each = Object.entries(byStatus).map(([status, events]) => `${events} ${status}`);
  const what = `${total} ${total === 1 ? 'event' : 'events'} of ${partnerId} (${each.join(', ')})`;
  if (!yes) await agree(confirm, what);

  const { actor } = await session.operator();
  const detail = { since: since?.toISOString() ?? null, endpoint: endpointId, statuses, count: total };
  let requeued = 0;
  for (let after = ''; ; ) {
    const page = await readPage(orm.em.fork(), { ...range, after, limit: PAGE });
    // The first page records the whole request.
    const audit = after === '' ? { subject: partnerId, detail } : null;
    await requeueDeliveries(orm, page, { actor, audit });
    await notifyEvents(orm);
    requeued += page.length;
    if (page.length > 0) err(`requeued ${requeued} of ${total}\n`);
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) break;
    after = last.eventId;
  }
  return { partner_id: partnerId, requeued, by_status: byStatus };
}

async function agree(confirm: Tools['confirm'], what: string): Promise<void> {
  const agreed = await confirm(`Send ${what} again?`);
  if (agreed === null)
    throw new Refusal(`This would send ${what} again. Nothing was done: add --yes to confirm.`);
  if (!agreed) throw new Refusal('Nothing was done.');
}

/** An account's events from one id to another. */
interface Range {
  partnerId: string;
  endpointId: string | null;
  from: string;
  until: string;
}

/**
 * The statements are built for these statuses: only literals let the partial index of waiting events be used.
 * An event that no endpoint wanted counts for each one that wants it now.
 */
function statementsFor(statuses: readonly DeliveryStatus[]) {
  const wanted = ({ partnerId, endpointId, from, until }: Range) => sql`
    FROM delivery d LEFT JOIN LATERAL (
      SELECT only_endpoint_id, except_endpoint_id FROM event WHERE id = d.event_id AND d.endpoint_id = ''
        LIMIT 1
    ) e ON true LEFT JOIN webhook_endpoint w ON w.partner_id = d.partner_id AND w.mode = d.mode
      AND w.status = 'enabled' AND w.id = coalesce(${endpointId}::text, w.id)
      AND CASE WHEN d.endpoint_id <> '' THEN w.id = d.endpoint_id
        ELSE wants_event(w.event_types, d.type, e.only_endpoint_id, e.except_endpoint_id, w.id) END
    WHERE d.partner_id = ${partnerId} AND d.status IN (${sql.join(statuses.map((status) => sql.lit(status)))})
      AND d.event_id >= ${from} AND d.event_id < ${until}
      AND (${endpointId}::text IS NULL OR d.endpoint_id IN ('', ${endpointId}))`;
  return {
    count: readStatement(
      (_, range: Range) => sql<{ status: DeliveryStatus; has_endpoint: boolean; events: number }>`
        SELECT d.status, w.id IS NOT NULL AS has_endpoint, count(*)::int AS events ${wanted(range)}
        GROUP BY d.status, has_endpoint ORDER BY d.status`,
      { acrossTenants: 'operator' },
    ),
    /**
     * The next of the deliveries that have an enabled endpoint, the oldest event first, by key. All of an
     * event are on one page, since sending it gives the row without an endpoint to one of them.
     */
    readPage: readStatement(
      (_, page: Range & { after: string; limit: number }) => sql<DeliveryKey>`
        SELECT d.event_id AS "eventId", w.id AS "endpointId" ${wanted(page)}
          AND w.id IS NOT NULL AND d.event_id > ${page.after}
        ORDER BY d.event_id FETCH FIRST ${page.limit} ROWS WITH TIES`,
      { acrossTenants: 'operator' },
    ),
  };
}
