import { type Account, utcDay } from '../account.ts';
import type { Run } from '../clients/run.ts';
import type { Settled } from '../clients/token-chain.ts';
import { demandSame } from '../difference.ts';
import { atRest, availableOn, type Effect, heldBy } from '../rules/card-state.ts';
import { judgeShared } from '../rules/judge-shared.ts';
import { count } from '../tally.ts';
import { compareDeposits } from './compare-deposits.ts';
import { explainCard } from './explain-card.ts';
import { type ObservedAccount, observeAccount, observeCard } from './observe.ts';

/**
 * At a quiet point: finds the one state of each card and deposit that explains all answers and all that can be read, and
 * compares everything about the account with it.
 * @throws Difference
 */
export async function compareAccount(
  { service, tally }: Run,
  account: Account,
  settled: Settled,
): Promise<void> {
  const touched = account.cards.filter(({ steps }) => steps.length > 0);
  const observed = await observeAccount(service, account);
  const known = account.changes.length;
  demandSame(`${account.name}: the balance before`, observed.changes.slice(0, known), account.changes);
  const changes = observed.changes.slice(known);
  const unexplained = new Set(changes);

  for (const card of touched) {
    if (card.id === undefined) {
      card.states = [explainCard(card, undefined)];
      continue;
    }
    const seen = await observeCard(service, card);
    const sources = [seen.card, ...seen.topUps, ...seen.withdrawals, ...seen.transactions];
    const ids = new Set(sources.map(({ id }) => id));
    const own = changes.filter(({ source }) => ids.has(source.id));
    for (const change of own) unexplained.delete(change);
    const events = observed.events.filter(
      ({ id, data }) => data.card?.id === card.id && !card.events.has(id),
    );
    card.states = [explainCard(card, { ...seen, changes: own, events })];
    for (const event of events) {
      card.events.add(event.id);
      count(tally.seen, `${account.mode} ${describeEvent(event)}`);
    }
    for (const transaction of seen.transactions) card.transactions.set(transaction.id, transaction);
  }
  compareDeposits(account, { ...observed, changes }, settled, tally);
  const effects = touched.flatMap(({ states }) => states.flatMap((state) => state.effects));
  judgeShared(
    account,
    touched.flatMap(({ steps }) => steps.flat()),
    effects,
  );
  for (const card of touched) {
    card.states = card.states.map(atRest);
    card.steps = [];
  }
  account.cards = account.cards.filter(({ id }) => id !== undefined);
  compareTotals(account, observed, effects, [...unexplained]);
  account.changes = observed.changes;
  account.movements = [];
}

function compareTotals(
  account: Account,
  { balance, cards, changes, events, usage }: ObservedAccount,
  effects: readonly Effect[],
  unexplained: ObservedAccount['changes'],
): void {
  const { name } = account;
  const made = account.movements.filter((movement) => movement.made);
  demandSame(
    `${name}: changes of the balance that no card explains`,
    unexplained.map(({ type, amount }) => `${type} ${amount}`).sort(),
    made.map(({ type, cents }) => `${type} ${cents}`).sort(),
  );
  let total = 0;
  const chain = changes.map(({ amount }) => {
    total += amount;
    return total;
  });
  demandSame(
    `${name}: balance_after`,
    changes.map((change) => change.balance_after),
    chain,
  );
  account.availableCents +=
    sum(effects.map(({ availableCents }) => availableCents)) + sum(made.map(({ cents }) => cents));
  const held = sum(
    account.cards.flatMap(({ states }) => states.flatMap(({ pending }) => pending.map(heldBy))),
  );
  const { available } = balance;
  demandSame(
    `${name}: balance`,
    { available, held: balance.held, total: balance.total },
    { available: account.availableCents, held, total },
  );
  demandSame(`${name}: available + held`, account.availableCents + held, total);

  account.openCards += sum(effects.map(({ openCards }) => openCards));
  account.loadedCents += sum(effects.map(({ loadedCents }) => loadedCents));
  const open = account.cards.filter(({ states }) =>
    ['funding_pending', 'active', 'frozen'].includes(states[0]?.status ?? ''),
  );
  demandSame(`${name}: open cards`, [usage.openCards, open.length], [account.openCards, account.openCards]);
  if (account.day === utcDay()) demandSame(`${name}: loaded today`, usage.loadedCents, account.loadedCents);

  demandSame(
    `${name}: GET /cards`,
    cards.map((card) => `${card.id} ${card.status} ${card.balance}/${card.available_balance}`).sort(),
    account.cards
      .map(
        ({ id, states: [state] }) =>
          `${id} ${state?.status} ${state?.balance}/${state && availableOn(state)}`,
      )
      .sort(),
  );
  demandSame(
    `${name}: number of events`,
    events.length,
    [
      ...account.cards.map((card) => card.events.size),
      ...account.deposits.map(({ id }) => events.filter(({ data }) => data.deposit?.id === id).length),
    ].reduce((total, one) => total + one, 0),
  );
}

function describeEvent({
  type,
  data: { card, topup, withdrawal, transaction, authorization },
}: ObservedAccount['events'][number]): string {
  const detail =
    transaction?.decline_reason ??
    transaction?.charged_to ??
    authorization?.decline_reason ??
    authorization?.status ??
    (topup ?? withdrawal ?? card).failure_code;
  return [type, ...(transaction === undefined ? [] : [transaction.type]), detail ?? ''].join(' ').trim();
}

function sum(cents: readonly number[]): number {
  return cents.reduce((total, one) => total + one, 0);
}
