import { randomUUID } from 'node:crypto';
import type { Answer } from '../../support/stack.ts';
import type { Account, Card, Repeatable } from '../account.ts';
import { demandSame } from '../difference.ts';
import { describeOperation, nameOf, type Operation, outcomeOf } from '../rules/operation.ts';
import type { Draw } from '../script.ts';
import { count } from '../tally.ts';
import { ask } from './ask.ts';
import type { Put } from './put.ts';
import { putQuestion } from './put-question.ts';
import type { Run } from './run.ts';

/** Sends what was drawn, for an existing card. @returns nothing if it changes nothing and was already judged */
export async function perform(
  run: Run,
  card: Card,
  draw: Draw,
  name: string,
): Promise<Operation | undefined> {
  const { kind, pick } = draw;
  const repeatable = card.asked[pick % card.asked.length];
  if (kind === 'foreign') return demandNotFound(run, card, draw, name);
  if (kind === 'again' && repeatable !== undefined) return demandReplay(run, card, repeatable, name);
  if (kind === 'altered' && repeatable !== undefined) return demandConflict(run, card, repeatable, name);
  return carryOut(run, card, await putQuestion(run.service, card, draw), { name, twice: draw.twice });
}

/** Sends a question and keeps the answer. @param twice at the same time, as two of a partner's processes might */
export async function carryOut(
  run: Run,
  card: Card,
  { question, send, altered, saysSo }: Put,
  { name, twice }: { name: string; twice: boolean },
): Promise<Operation> {
  const isTwice = twice && altered !== undefined;
  const askedAt = run.tick();
  const [first, other] = await Promise.all([send(), ...(isTwice ? [send()] : [])]);
  // What was kept for later, or refused with 400, leaves the key free: repeated, it can get another answer.
  const isUnsettled = (one: Answer | undefined) => one?.status === 400 || (!saysSo && one?.status === 202);
  const answer = (isUnsettled(first) && other !== undefined ? other : first) as Answer;
  const operation: Operation = { name, question, answer, askedAt, heardAt: run.tick() };
  card.log.push(`${describeOperation(operation)}${isTwice ? ' (asked twice)' : ''}`);
  if (other !== undefined && !isUnsettled(first) && !isUnsettled(other))
    demandSame(`${name}: one request, two answers`, other.text, answer.text, card.log);
  if (altered !== undefined && !isUnsettled(answer))
    card.asked.push({ name, first: answer, again: send, altered, saysSo });
  count(run.tally.asked, `${card.account.mode} ${nameOf(question)} ${outcomeOf(answer)}`);
  return operation;
}

async function demandReplay(run: Run, card: Card, asked: Repeatable, name: string): Promise<undefined> {
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

async function demandConflict(run: Run, card: Card, asked: Repeatable, name: string): Promise<undefined> {
  const answer = await asked.altered();
  const outcome = outcomeOf(answer);
  card.log.push(`${name} ${asked.name} altered -> ${outcome}`);
  const what = `${name}: another request under the key of ${asked.name}`;
  demandSame(what, outcome, '422 idempotency_conflict', card.log);
  count(run.tally.asked, `${card.account.mode} altered ${outcome}`);
}

async function demandNotFound(run: Run, card: Card, { pick, cents }: Draw, name: string): Promise<undefined> {
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
