import { randomUUID } from 'node:crypto';
import type { Account, Card } from '../account.ts';
import { demandSame } from '../difference.ts';
import { NO_CARD } from '../rules/card-state.ts';
import type { Operation } from '../rules/operation.ts';
import type { Lane } from '../script.ts';
import { carryOut, perform } from './perform.ts';
import { keyed } from './put.ts';
import { expiry } from './put-authorization.ts';
import { fundingCents, readTopUps } from './put-question.ts';
import { findOverdue, resolve } from './resolve.ts';
import type { Run } from './run.ts';

const KEEPS_REF = ['active', 'frozen', 'blocked'];

/** One client's work on one card. @param card undefined: a new one */
export async function runLane(
  run: Run,
  account: Account,
  lane: Lane,
  card: Card | undefined,
  name: string,
): Promise<void> {
  const worked = card ?? (await issue(run, account, lane, `${name}.issue`));
  if (worked.id === undefined) return;
  const overdue = card === undefined ? undefined : await findOverdue(run, card);
  // Most frozen cards are unfrozen first, since little can be done with them.
  const isThawed = card?.states[0]?.status === 'frozen' && lane.issue.pick % 3 > 0;
  const steps = isThawed ? [[{ ...lane.issue, kind: 'unfreeze' as const }], ...lane.steps] : lane.steps;
  for (const [index, draws] of steps.entries()) {
    const named = draws.map((draw, place) => ({ draw, name: `${name}.${index}.${place}` }));
    const asked = named.map((one) => perform(run, worked, one.draw, one.name));
    if (index === 0 && overdue !== undefined) {
      asked.push(resolve(run, worked, overdue, lane.issue.pick % 2 === 0, `${name}.resolve`));
    }
    const operations = await Promise.all(asked);
    worked.steps.push(operations.filter((operation) => operation !== undefined));
    if (operations.some(isBlocked)) {
      // After the answer that a card is blocked, none of its top-ups is pending.
      const put = readTopUps(run.service, worked);
      worked.steps.push([await carryOut(run, worked, put, { name: `${name}.${index}.after`, twice: false })]);
    }
  }
}

function isBlocked(operation: Operation | undefined): boolean {
  const question = operation?.question;
  return question?.kind === 'change' && question.verb === 'block' && operation?.answer.status === 200;
}

async function issue(run: Run, account: Account, { issue: draw }: Lane, name: string): Promise<Card> {
  const { pick } = draw;
  // A failed card frees its external_ref, and a pending one can still fail.
  const taken = account.cards.filter(({ states: [state] }) => KEEPS_REF.includes(state?.status ?? 'none'));
  const refTaken = pick % 12 === 0 && taken.length > 0;
  const externalRef = refTaken ? (taken[pick % taken.length] as Card).externalRef : randomUUID();
  const card: Card = {
    ...{ account, id: undefined, externalRef, networkCardId: undefined, states: [NO_CARD], steps: [] },
    ...{ asked: [], authorized: [], log: [], transactions: new Map(), events: new Set() },
  };
  account.cards.push(card);
  const cents = fundingCents(draw);
  const controls = pick % 2 === 0 ? draw.controls : null;
  const body = { amount: cents, external_ref: externalRef, spending_controls: controls };
  const other = { path: '/cards', body: { ...body, amount: cents + 1 } };
  const question = { kind: 'issue', cents, refTaken, controls } as const;
  const put = keyed(run.service, account, question, { path: '/cards', body, other });
  const operation = await carryOut(run, card, put, { name, twice: draw.twice });
  card.steps.push([operation]);
  const { status, json, text } = operation.answer;
  card.id = status === 201 || status === 202 ? json.id : undefined;
  if (card.id === undefined && pick % 2 === 0) {
    demandSame(`${name}: a refusal asked again`, (await put.send()).text, text, card.log);
  }
  return card;
}

export async function releaseHolds(run: Run, card: Card, name: string): Promise<void> {
  const held = (card.states[0]?.authorizations ?? []).filter(({ status }) => status === 'pending');
  for (const [index, { id, networkId }] of held.entries()) {
    const put = await expiry(run.service, card, networkId ?? id);
    card.steps.push([await carryOut(run, card, put, { name: `${name}.expiry${index}`, twice: false })]);
  }
}
