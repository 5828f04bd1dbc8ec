import type { Answer } from '../../support/stack.ts';
import type { Account, Deposit } from '../account.ts';
import type { Settled } from '../clients/token-chain.ts';
import { Difference } from '../difference.ts';
import {
  type DepositState,
  type DepositTerms,
  decimalOf,
  explainDeposit,
  receivedCents,
  statusOf,
} from '../rules/deposit.ts';
import { count, type Tally } from '../tally.ts';

type Resource = Answer['json'];

/** What can be read of an account's deposits. The changes of the balance are those since the last quiet point. */
interface ReadDeposits {
  /** Newest first. */
  deposits: Resource[];
  /** Oldest first. */
  changes: Resource[];
  events: Resource[];
}

/**
 * At a quiet point: finds the one state of each deposit that explains the decisions and what can be read, and adds the credits
 * to the account's movements.
 * @throws Difference
 */
export function compareDeposits(account: Account, read: ReadDeposits, settled: Settled, tally: Tally): void {
  const listed = new Map(read.deposits.map((resource): [string, Resource] => [resource.id, resource]));
  const ids = read.deposits.map(({ id }) => id);
  const expected = account.deposits
    .map(({ id }) => id)
    .sort()
    .reverse();
  if (ids.join() !== expected.join())
    throw new Difference(`${account.name}: GET /funding/deposits`, [
      `service: ${ids}`,
      `model:   ${expected}`,
    ]);
  for (const deposit of account.deposits) {
    const before = deposit.state.credits.length;
    const resource = listed.get(deposit.id);
    deposit.transfers.push(...(settled.transfers.get(deposit.addressHash) ?? []));
    deposit.state = explain(deposit, resource, read, settled.solidTimeMs);
    for (const { cents, from, to } of deposit.state.credits.slice(before)) {
      const credit = { name: deposit.id, type: 'deposit', cents, made: true } as const;
      account.movements.push({ ...credit, askedAt: from, heardAt: to });
      count(tally.seen, 'live deposit.confirmed');
    }
    count(tally.seen, `live deposit is ${resource.status}`);
    deposit.transfers = [];
    deposit.decisions = [];
  }
}

function explain(
  deposit: Deposit,
  resource: Resource,
  { changes, events }: ReadDeposits,
  scannedToMs: number,
): DepositState {
  const { id, terms, state, transfers, decisions, log } = deposit;
  const known = state.credits.length;
  const ofIt = {
    resource,
    changes: changes.filter(({ source }) => source.id === id),
    events: events.filter(({ data }) => data.deposit?.id === id),
  };
  const judged = explainDeposit(terms, state, transfers, decisions).map((possible) => ({
    state: possible,
    wrong: wrongOf(deposit, possible, ofIt, { known, scannedToMs }),
  }));
  const [best] = judged.sort((a, b) => a.wrong.length - b.wrong.length);
  if (best?.wrong.length === 0) return best.state;
  throw new Difference(
    `${deposit.account.name}, ${id}: what can be read does not follow from the payments and decisions`,
    [
      ...(best?.wrong ?? ['no order of transfers and decisions explains what the operator was told']),
      ...transfers.map(
        (transfer) => `paid ${JSON.stringify({ ...transfer, microUsdt: `${transfer.microUsdt}` })}`,
      ),
      ...decisions.map((decision) => `decided ${JSON.stringify(decision)}`),
      'everything done with it:',
      ...log,
    ],
  );
}

function wrongOf(
  { terms }: Deposit,
  state: DepositState,
  { resource, changes, events }: { resource: Resource; changes: Resource[]; events: Resource[] },
  { known, scannedToMs }: { known: number; scannedToMs: number },
): string[] {
  const credits = state.credits.map(({ cents }) => cents);
  const { status, amount, received_amount, credited_amount, tx_hash, payments, confirmed_at } = resource;
  const isConfirmed = confirmed_at !== null;
  const shown = { status, amount, received_amount, credited_amount, tx_hash, payments, isConfirmed };
  const model = {
    ...{ status: statusOf(state, terms, scannedToMs), amount: terms.amountCents },
    ...{
      received_amount: receivedCents(state),
      credited_amount: credits.reduce((sum, cents) => sum + cents, 0),
    },
    ...{ tx_hash: state.payments[0]?.transfer.txHash ?? null },
    payments: state.payments.map(({ status, transfer: { txHash, microUsdt, blockNumber, blockTimeMs } }) => ({
      ...{ tx_hash: txHash, amount_usdt: decimalOf(microUsdt) },
      ...{ block: blockNumber, time: new Date(blockTimeMs).toISOString(), status },
    })),
    isConfirmed: credits.length > 0,
  };
  const aspects: [string, unknown, unknown][] = [
    ['deposit', shown, model],
    [
      'changes of the balance',
      changes.map(({ type, amount: cents }) => `${type} ${cents}`),
      credits.slice(known).map((cents) => `deposit ${cents}`),
    ],
    [
      'events',
      events.map(({ type }) => type).sort(),
      [
        ...credits.map(() => 'deposit.confirmed'),
        ...(isExpired(state, terms, events, model.status) ? ['deposit.expired'] : []),
        ...Array.from({ length: state.reviews }, () => 'deposit.needs_review'),
      ],
    ],
  ];
  return aspects
    .map(([what, service, expected]) => [what, JSON.stringify(service), JSON.stringify(expected)])
    .filter(([, service, expected]) => service !== expected)
    .map(([what, service, expected]) => `${what}: service ${service}, model ${expected}`);
}

/** Whether it has expired. A payment after its time may be found before or after that. */
function isExpired(
  { payments: [first] }: DepositState,
  { expiresAtMs }: DepositTerms,
  events: Resource[],
  status: string,
): boolean {
  const isLate = first !== undefined && first.transfer.blockTimeMs > expiresAtMs;
  return status === 'expired' || (isLate && events.some(({ type }) => type === 'deposit.expired'));
}
