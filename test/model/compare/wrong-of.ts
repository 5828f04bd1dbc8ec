import type { Answer } from '../../support/stack.ts';
import { type Card, utcDay } from '../account.ts';
import { inWords, shown, shownBy } from '../rules/authorization.ts';
import { availableOn, type CardState } from '../rules/card-state.ts';
import { sumOf } from '../rules/prices.ts';
import { limitsOn } from '../rules/spending.ts';
import type { ObservedCard } from './observe.ts';

type Resource = Answer['json'];

/** What can be read of a card at a quiet point. Events and changes of the balance are those since the last one. */
export interface ReadCard extends ObservedCard {
  changes: Resource[];
  events: Resource[];
}

/** How long an authorization holds its amount at most. */
const AUTHORIZATION_TTL_MS = 168 * 3_600_000;

export function wrongOf(card: Card, state: CardState, read: ReadCard): string[] {
  const { topUps, withdrawals, authorizations, transactions, changes, events, networkStatus } = read;
  const { status, balance, available_balance, failure_code, spending_controls } = read.card;
  const settled = state.events.filter((event) => event.startsWith('card.transaction.created'));
  const aspects: [string, unknown, unknown][] = [
    [
      'card',
      { status, balance, available_balance, failure_code, spending_controls },
      {
        status: state.status,
        balance: state.balance,
        available_balance: availableOn(state),
        failure_code: state.failure,
        spending_controls: state.controls,
      },
    ],
    [
      'top-ups',
      fieldsOf(byId(topUps), [...TRANSFER, 'fees', 'total_debited']),
      byId(state.topUps).map((topUp) => {
        const { cents, fees } = topUp;
        return { ...transferIn(state, topUp), fees, total_debited: cents + sumOf(fees) };
      }),
    ],
    [
      'withdrawals',
      fieldsOf(byId(withdrawals), TRANSFER),
      byId(state.withdrawals).map((withdrawal) => transferIn(state, withdrawal)),
    ],
    ['authorizations', byId(authorizations).map(shownBy), byId(state.authorizations).map(shown)],
    ['when authorizations expire', authorizations.filter((one) => !expiresInTime(one)), []],
    ['spending limits', read.limits, limitsOn(state, card.account.controls, utcDay())],
    [
      'changes of the balance',
      changes.map(({ type, amount, source }) => `${type} ${amount} ${source.id}`).sort(),
      state.entries
        .map(({ type, cents, source }) => `${type} ${cents} ${source === 'card' ? card.id : source}`)
        .sort(),
    ],
    ['events', events.map(describe).sort(), [...state.events].sort()],
    [
      'transactions',
      transactions
        .filter(({ id }) => !card.transactions.has(id))
        .map(({ id }) => id)
        .sort(),
      settled.map((event) => event.split(/[ ,]/)[1]).sort(),
    ],
    [
      'clearings without a request',
      state.overtaking.map(({ transactionId }) => transactionId).filter((id) => isLinked(transactions, id)),
      [],
    ],
    ['the network has it as', networkStatus, networkStatusOf(card, state) ?? networkStatus],
    ['order of lists', [topUps, withdrawals, authorizations, transactions].every(isNewestFirst), true],
    ...contents(card, read),
  ];
  return aspects
    .map(([what, service, model]) => [what, JSON.stringify(service), JSON.stringify(model)])
    .filter(([, service, model]) => service !== model)
    .map(([what, service, model]) => `${what}: service ${service}, model ${model}`);
}

/** An event in the words of the model: its subject, and its card as it was right after it. */
function describe({ type, data }: Resource): string {
  const { authorization, card } = data;
  const subject = authorization === undefined ? subjectOf(data).id : inWords(shownBy(authorization));
  return `${type} ${subject}, card ${card.status} ${card.balance}/${card.available_balance}`;
}

function isLinked(transactions: Resource[], transactionId: string): boolean {
  return transactions.find(({ id }) => id === transactionId)?.authorization_id !== null;
}

function expiresInTime({ status, created, expires_at: expiresAt }: Resource): boolean {
  if (status === 'declined') return expiresAt === null;
  // The model lets the time of others be over.
  return status !== 'pending' || Date.parse(expiresAt) - Date.parse(created) === AUTHORIZATION_TTL_MS;
}

/**
 * Answers and events show each top-up, withdrawal and transaction as it can be read, and what was read before has not changed.
 * Events of authorizations show each of their changes.
 */
function contents(
  card: Card,
  { topUps, withdrawals, transactions, events }: ReadCard,
): [string, unknown, unknown][] {
  const readable = new Map(
    [...topUps, ...withdrawals, ...transactions].map((resource): [string, Resource] => [
      resource.id,
      resource,
    ]),
  );
  // A clearing that overtakes its request gets its authorization later.
  const asBefore = (before: Resource) => {
    const now = readable.get(before.id);
    return before.authorization_id === null && now !== undefined ? { ...now, authorization_id: null } : now;
  };
  const told = card.steps
    .flat()
    .filter(
      ({ question: { kind }, answer }) => ['top_up', 'withdraw'].includes(kind) && answer.status === 201,
    );
  return [
    ...told.map(({ name, answer }): [string, unknown, unknown] => [
      name,
      readable.get(answer.json.id),
      answer.json,
    ]),
    ...events
      .filter(({ data }) => data.authorization === undefined && subjectOf(data) !== data.card)
      .map(({ id, data }): [string, unknown, unknown] => [id, asBefore(subjectOf(data)), subjectOf(data)]),
    ...[...card.transactions].map(([id, before]): [string, unknown, unknown] => [
      id,
      asBefore(before),
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
  return data.transaction ?? data.withdrawal ?? data.topup ?? data.card;
}

/** What a top-up and a withdrawal show alike. */
const TRANSFER = ['id', 'status', 'amount', 'failure_code', 'card_balance'];

function transferIn(
  { balance }: CardState,
  { id, status, cents, failure, cardBalance }: CardState['withdrawals'][number],
): object {
  return { id, status, amount: cents, failure_code: failure, card_balance: cardBalance ?? balance };
}

function fieldsOf(resources: Resource[], fields: readonly string[]): object[] {
  return resources.map((resource) => Object.fromEntries(fields.map((field) => [field, resource[field]])));
}

function byId<T extends { id: string }>(items: readonly T[]): T[] {
  return [...items].sort((a, b) => (a.id < b.id ? -1 : 1));
}

function isNewestFirst(items: Resource[]): boolean {
  return items.every(({ id }, index) => index === 0 || id < items[index - 1].id);
}
