import { randomUUID } from 'node:crypto';
import type { Account, Card, Repeatable } from '../account.ts';
import { demandSame } from '../difference.ts';
import { outcomeOf } from '../rules/operation.ts';
import type { Draw } from '../script.ts';
import { count } from '../tally.ts';
import { ask } from './ask.ts';
import { dismiss } from './put-authorization.ts';
import type { Run } from './run.ts';

/** A repeated request gets the same bytes. @throws Difference */
export async function demandReplay(
  run: Run,
  card: Card,
  asked: Repeatable,
  name: string,
): Promise<undefined> {
  const { first } = asked;
  const { text, status, headers } = await asked.again();
  card.log.push(`${name} ${asked.name} again -> ${status}`);
  demandSame(
    `${name}: ${asked.name} asked again`,
    { status, text, replayed: headers.get('idempotent-replayed') },
    { status: first.status, text: first.text, replayed: asked.saysSo ? 'true' : null },
    card.log,
  );
  count(run.tally.asked, `${card.account.mode} asked again ${status}`);
}

/**
 * Another request with the same key is refused; another transaction with the same network transaction id is kept, and an
 * operator dismisses it. @throws Difference
 */
export async function demandConflict(
  run: Run,
  card: Card,
  asked: Repeatable,
  name: string,
): Promise<undefined> {
  const answer = await asked.altered();
  const outcome = outcomeOf(answer);
  card.log.push(`${name} ${asked.name} altered -> ${outcome}`);
  demandSame(`${name}: another request under the key of ${asked.name}`, outcome, asked.conflict, card.log);
  if (outcome === '202') await dismiss(run.service, answer);
  count(run.tally.asked, `${card.account.mode} altered ${outcome}`);
}

/** Another partner, or the same partner in the other mode, does not find the card. @throws Difference */
export async function demandNotFound(
  run: Run,
  card: Card,
  { pick, cents }: Draw,
  name: string,
): Promise<undefined> {
  const others = run.accounts.filter((account) => account !== card.account);
  const other = others[pick % others.length] as Account;
  const { key } = other;
  const path = `/cards/${card.id}`;
  const move = { method: 'POST', body: { amount: cents }, idempotencyKey: randomUUID() } as const;
  const requests = [
    { method: 'GET', path } as const,
    { method: 'GET', path: `${path}/spending-limits` } as const,
    { ...move, path: `${path}/topups` },
    { ...move, path: `${path}/withdrawals` },
  ];
  const request = requests[pick % requests.length] as (typeof requests)[number];
  const answer = await ask(run.service, { key, ...request });
  const outcome = outcomeOf(answer);
  card.log.push(`${name} asked by ${other.name} -> ${outcome}`);
  demandSame(
    `${name}: ${other.name} asked for a card of ${card.account.name}`,
    outcome,
    '404 card_not_found',
    card.log,
  );
  count(run.tally.asked, `${card.account.mode} asked by another ${outcome}`);
}
