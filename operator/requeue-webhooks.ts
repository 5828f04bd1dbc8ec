import { Refusal } from '../commands/idempotency/refusal.ts';
import { announceEvents } from '../commands/webhooks/announce-events.ts';
import { requeueByOperator, requeueEvents } from '../commands/webhooks/requeue-events.ts';
import type { DeliveryStatus } from '../domain/event.ts';
import { readPartner } from './reads/partners.ts';
import { countRequeueable, type Requeueable, readRequeueable } from './reads/read-requeueable.ts';
import type { Verbs } from './verbs.ts';

const PAGE = 500;

export interface Requeued {
  partner_id: string;
  requeued: number;
  by_status: Partial<Record<DeliveryStatus, number>>;
}

/**
 * Has many of an account's events sent again, after it was said how many they are and somebody agreed.
 * @param yes agreed beforehand
 * @throws Refusal where there is no such account, or nobody agreed.
 */
export async function requeueWebhooks(
  { session, err, confirm }: Verbs,
  asked: Omit<Requeueable, 'until'>,
  yes: boolean,
): Promise<Requeued> {
  const { partnerId, since, statuses } = asked;
  const wanted = { ...asked, until: new Date() };
  const orm = await session.orm();
  await readPartner(orm, partnerId);
  const { byStatus, waiting } = await countRequeueable(orm, wanted);
  const total = Object.values(byStatus).reduce((sum, count) => sum + count, 0);
  if (waiting > 0)
    err(`${waiting} more have no enabled endpoint: see "operator webhook-endpoint show ${partnerId}".\n`);
  if (total === 0) return { partner_id: partnerId, requeued: 0, by_status: {} };
  const counted = Object.entries(byStatus).map(([status, count]) => `${count} ${status}`);
  const what = `${total} ${total === 1 ? 'event' : 'events'} of ${partnerId} (${counted.join(', ')})`;
  if (!yes) await agree(confirm, what);

  await requeueByOperator(await session.operator(), partnerId, [], {
    since: since?.toISOString() ?? null,
    statuses,
    count: total,
  });
  let requeued = 0;
  for (let after = ''; ; ) {
    const page = await readRequeueable(orm, wanted, after, PAGE);
    await requeueEvents(orm.em.fork(), page);
    await announceEvents(orm);
    requeued += page.length;
    if (page.length > 0) err(`requeued ${requeued} of ${total}\n`);
    const last = page.at(-1);
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
