import type { Answer } from '../../support/stack.ts';
import type { Card } from '../account.ts';
import type { CardState } from '../rules/card-state.ts';
import { sumOf } from '../rules/prices.ts';
import type { ObservedCard } from './observe.ts';

type Resource = Answer['json'];

/** What can be read of a card at a quiet point. Events and changes of the balance are those since the last one. */
export interface ReadCard extends ObservedCard {
  changes: Resource[];
  events: Resource[];
}

/** A line for everything that differs from this state. */
export function wrongOf(
  card: Card,
  state: CardState,
  { card: resource, topUps, transactions, changes, events, networkStatus }: ReadCard,
): string[] {
  const { status, balance, failure_code } = resource;
  const aspects: [string, unknown, unknown][] = [
    [
      'card',
      { status, balance, failure_code },
      { status: state.status, balance: state.balance, failure_code: state.failure },
    ],
    [
      'top-ups',
      byId(topUps).map(presentedTopUp),
      byId(state.topUps).map((topUp) => expectedTopUp(topUp, state)),
    ],
    [
      'changes of the balance',
      changes.map(({ type, amount, source }) => `${type} ${amount} ${source.id}`).sort(),
      state.entries.map(({ type, cents, source }) => `${type} ${cents} ${source}`).sort(),
    ],
    [
      'events',
      events.map(({ type, data }) => `${type} ${subjectOf(data).id}`).sort(),
      [...state.events].sort(),
    ],
    [
      'transactions',
      transactions
        .filter(({ id }) => !card.transactions.has(id))
        .map(({ id }) => `card.transaction.created ${id}`)
        .sort(),
      state.events.filter((event) => event.startsWith('card.transaction.created')).sort(),
    ],
    ['the network has it as', networkStatus, networkStatusOf(card, state) ?? networkStatus],
    ['order of lists', isNewestFirst(topUps) && isNewestFirst(transactions), true],
    ...contents(card, topUps, transactions, events),
  ];
  return aspects
    .map(([what, service, model]) => [what, JSON.stringify(service), JSON.stringify(model)])
    .filter(([, service, model]) => service !== model)
    .map(([what, service, model]) => `${what}: service ${service}, model ${model}`);
}

/** Answers and events show each top-up and transaction as it can be read, and what was read before has not changed. */
function contents(
  card: Card,
  topUps: Resource[],
  transactions: Resource[],
  events: Resource[],
): [string, unknown, unknown][] {
  const readable = new Map(
    [...topUps, ...transactions].map((resource): [string, Resource] => [resource.id, resource]),
  );
  const told = card.steps
    .flat()
    .filter(({ question, answer }) => question.kind === 'top_up' && answer.status === 201);
  return [
    ...told.map(({ name, answer }): [string, unknown, unknown] => [
      name,
      readable.get(answer.json.id),
      answer.json,
    ]),
    ...events
      .filter(({ data }) => subjectOf(data) !== data.card)
      .map(({ id, data }): [string, unknown, unknown] => [
        id,
        readable.get(subjectOf(data).id),
        subjectOf(data),
      ]),
    ...[...card.transactions].map(([id, before]): [string, unknown, unknown] => [
      id,
      readable.get(id),
      before,
    ]),
  ];
}

/** Undefined if the card is not issued: then any status at the network is right. */
function networkStatusOf({ account }: Card, { status }: CardState): string | undefined {
  const isThere = account.mode === 'live' && ['active', 'frozen', 'blocked'].includes(status);
  return isThere ? status : undefined;
}

function subjectOf(data: Resource): Resource {
  return data.transaction ?? data.topup ?? data.card;
}

function presentedTopUp({
  id,
  status,
  amount,
  fees,
  total_debited,
  failure_code,
  card_balance,
}: Resource): object {
  return { id, status, amount, fees, total_debited, failure_code, card_balance };
}

function expectedTopUp(
  { id, status, cents, fees, failure, cardBalance }: CardState['topUps'][number],
  { balance }: CardState,
): object {
  const total_debited = cents + sumOf(fees);
  return {
    id,
    status,
    amount: cents,
    fees,
    total_debited,
    failure_code: failure,
    card_balance: cardBalance ?? balance,
  };
}

function byId<T extends { id: string }>(items: readonly T[]): T[] {
  return [...items].sort((a, b) => (a.id < b.id ? -1 : 1));
}

function isNewestFirst(items: Resource[]): boolean {
  return items.every(({ id }, index) => index === 0 || id < items[index - 1].id);
}
