import { sql } from 'kysely';
import { Refusal } from '../commands/refusal.ts';
import { requeueEvents } from '../commands/webhooks/send-on-request.ts';
import { lowestId } from '../crypto/new-id.ts';
import { notifyEvents } from '../db/notifications.ts';
import type { Orm } from '../db/orm.ts';
import { type Reads, readStatement } from '../db/sql.ts';
import type { DeliveryStatus } from '../domain/event.ts';
import { readPartner } from './reads/partners.ts';
import { readWebhook, type WebhookDetail } from './reads/webhooks.ts';
import type { Session } from './session.ts';
import type { Verbs } from './verbs.ts';

const PAGE = 500;

/**
 * Sends one event again, at once.
 * @returns the event as it is then
 * @throws Refusal if there is no such event, or no enabled endpoint for it
 */
export async function requeueWebhook(session: Session, eventId: string): Promise<WebhookDetail> {
  const orm = await session.orm();
  const event = await readWebhook(orm, session.keys(), eventId);
  if (event.endpoint?.status !== 'enabled') {
    const verb = event.endpoint === null ? 'set' : 'enable';
    throw new Refusal(
      `${eventId} has no enabled endpoint: run "operator webhook-endpoint ${verb} ${event.partner_id}` +
        `${verb === 'set' ? ' --url U' : ''} --mode ${event.mode}" first.`,
    );
  }
  if (event.status === 'pending') return event;
  const { actor } = await session.operator();
  const audit = { subject: eventId, detail: { status: event.status } };
  await requeueEvents(orm, [eventId], { by: 'operator', actor, audit });
  await notifyEvents(orm);
  return readWebhook(orm, session.keys(), eventId);
}

/** Which of an account's events to send again. */
interface Wanted {
  partnerId: string;
  statuses: readonly DeliveryStatus[];
  since: Date | null;
}

interface Requeued {
  partner_id: string;
  requeued: number;
  by_status: Partial<Record<DeliveryStatus, number>>;
}

/**
 * Sends many of an account's events again, after a person has seen how many and confirmed. Events that are created later are
 * left out.
 * @param yes whether somebody agreed beforehand
 * @throws Refusal if there is no such account, or nobody agreed
 */
export async function requeueWebhooks(
  { session, err, confirm }: Verbs,
  { partnerId, statuses, since }: Wanted,
  yes: boolean,
): Promise<Requeued> {
  const orm = await session.orm();
  await readPartner(orm, partnerId);
  const { count, readPage } = statementsFor(statuses);
  const range = {
    partnerId,
    from: lowestId('evt', since ?? new Date(0)),
    until: lowestId('evt', new Date()),
  };
  const { byStatus, total, waiting } = await counted(orm, count, range);
  if (waiting > 0)
    err(`${waiting} more have no enabled endpoint: see "operator webhook-endpoint show ${partnerId}".\n`);
  if (total === 0) return { partner_id: partnerId, requeued: 0, by_status: {} };
  const each = Object.entries(byStatus).map(([status, events]) => `${events} ${status}`);
  const what = `${total} ${total === 1 ? 'event' : 'events'} of ${partnerId} (${each.join(', ')})`;
  if (!yes) await agree(confirm, what);

  const { actor } = await session.operator();
  const detail = { since: since?.toISOString() ?? null, statuses, count: total };
  let requeued = 0;
  for (let after = ''; ; ) {
    const page = await readPage(orm.em.fork(), { ...range, after, limit: PAGE });
    // The first page records the whole request.
    const audit = after === '' ? { subject: partnerId, detail } : null;
    const eventIds = page.map(({ event_id }) => event_id);
    await requeueEvents(orm, eventIds, { by: 'operator', actor, audit });
    await notifyEvents(orm);
    requeued += page.length;
    if (page.length > 0) err(`requeued ${requeued} of ${total}\n`);
    const last = eventIds.at(-1);
    if (last === undefined || page.length < PAGE) break;
    after = last;
  }
  return { partner_id: partnerId, requeued, by_status: byStatus };
}

async function agree(confirm: Verbs['confirm'], what: string): Promise<void> {
  const agreed = await confirm(`Send ${what} again?`);
  if (agreed === null)
    throw new Refusal(`This would send ${what} again. Nothing was done: add --yes to confirm.`);
  if (!agreed) throw new Refusal('Nothing was done.');
}

/** An account's events from one id to another. */
interface Range {
  partnerId: string;
  from: string;
  until: string;
}

/** @returns how many events can be sent, by status and in total, and how many wait because they have no enabled endpoint */
async function counted(orm: Orm, count: ReturnType<typeof statementsFor>['count'], range: Range) {
  const rows = await count(orm.em.fork(), range);
  const sendable = rows.filter((row) => row.has_endpoint);
  const byStatus: Requeued['by_status'] = Object.fromEntries(
    sendable.map(({ status, events }) => [status, events]),
  );
  const total = sendable.reduce((sum, { events }) => sum + events, 0);
  const waiting = rows.reduce((sum, { has_endpoint, events }) => sum + (has_endpoint ? 0 : events), 0);
  return { byStatus, total, waiting };
}

/** The statements are built for these statuses: only literals let the partial index of waiting events be used. */
function statementsFor(statuses: readonly DeliveryStatus[]) {
  const hasEndpoint = sql<boolean>`EXISTS (SELECT FROM webhook_endpoint w
    WHERE w.partner_id = d.partner_id AND w.mode = d.mode AND w.status = 'enabled')`;
  const wanted = (db: Reads, { partnerId, from, until }: Range) =>
    db
      .selectFrom('delivery as d')
      .where('d.partner_id', '=', partnerId)
      .where(
        'd.status',
        'in',
        statuses.map((status) => sql.lit(status)),
      )
      .where('d.event_id', '>=', from)
      .where('d.event_id', '<', until);
  return {
    count: readStatement(
      (db, range: Range) =>
        wanted(db, range)
          .select(['d.status', hasEndpoint.as('has_endpoint'), sql<number>`count(*)::int`.as('events')])
          .groupBy(['d.status', 'has_endpoint'])
          .orderBy('d.status'),
      { acrossTenants: 'operator' },
    ),
    /** The next of the events that have an enabled endpoint, oldest first, by key. */
    readPage: readStatement(
      (db, page: Range & { after: string; limit: number }) =>
        wanted(db, page)
          .select('d.event_id')
          .where('d.event_id', '>', page.after)
          .where(hasEndpoint)
          .orderBy('d.event_id')
          .limit(page.limit),
      { acrossTenants: 'operator' },
    ),
  };
}
