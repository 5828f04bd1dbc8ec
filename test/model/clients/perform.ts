import type { Answer } from '../../support/stack.ts';
import type { Card } from '../account.ts';
import { demandSame } from '../difference.ts';
import { describeOperation, nameOf, type Operation, outcomeOf } from '../rules/operation.ts';
import type { Draw } from '../script.ts';
import { count } from '../tally.ts';
import type { Put } from './put.ts';
import { putQuestion } from './put-question.ts';
import type { Run } from './run.ts';
import { demandConflict, demandNotFound, demandReplay } from './without-effect.ts';

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
  { question, send, altered, conflict = '422 idempotency_conflict', saysSo }: Put,
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
    card.asked.push({ name, first: answer, again: send, altered, conflict, saysSo });
  count(run.tally.asked, `${card.account.mode} ${nameOf(question)} ${outcomeOf(answer)}`);
  return operation;
}
