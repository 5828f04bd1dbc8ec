import type { Authorization, Overtaking } from './authorization.ts';
import type { Controls } from './controls.ts';
import { type Fee, sumOf } from './prices.ts';

/** The state of a card and its money after one serial order of the operations. */
export interface CardState {
  status: 'none' | 'funding_pending' | 'active' | 'frozen' | 'blocked' | 'failed';
  balance: number;
  failure: string | null;
  /** The network has already blocked it, but we have not. */
  networkBlocked: boolean;
  /** The issuances and top-ups that hold money of the account, and the withdrawals that hold money of the card. */
  pending: readonly Pending[];
  /** Those whose request was answered with 201 or 202. */
  topUps: readonly TopUp[];
  withdrawals: readonly Withdrawal[];
  authorizations: readonly Authorization[];
  overtaking: readonly Overtaking[];
  /** Purchases without an authorization and, below zero, refunds, by their ids. */
  bought: Readonly<Record<string, Bought>>;
  controls: Controls | null;
  /** How the operations that began have ended, by their names. Like all that follows, since the last quiet point. */
  ended: Readonly<Record<string, 'refused' | 'succeeded' | 'failed' | 'card_blocked'>>;
  entries: readonly Entry[];
  /** `type subject`, and what the event shows. */
  events: readonly string[];
  effects: readonly Effect[];
}

/** What counts towards spending limits without being an authorization. */
interface Bought {
  day: string;
  category: string | null;
  cents: number;
}

export interface Pending {
  op: string;
  what: 'card' | 'topup' | 'withdrawal';
  /** Null if the request failed, so that its id is unknown. */
  id: string | null;
  cents: number;
  fees: readonly Fee[];
  /** Answered with 202, so its failure is an event, and the resource can still be read. */
  announced: boolean;
  /** Begun after the network had blocked the card. */
  tooLate: boolean;
}

interface Withdrawal {
  id: string;
  status: 'pending' | 'succeeded' | 'failed';
  cents: number;
  failure: string | null;
  cardBalance: number | null;
}

interface TopUp extends Withdrawal {
  fees: readonly Fee[];
}

export interface Entry {
  type: string;
  cents: number;
  /** The id of what it came from; `card` for the card itself. */
  source: string;
}

/** An operation's effect on what the account's cards share. Late: at any time after it was sent, even after its answer. */
export interface Effect {
  op: string;
  late: boolean;
  availableCents: number;
  openCards: number;
  loadedCents: number;
}

export const NO_CARD: CardState = {
  status: 'none',
  balance: 0,
  failure: null,
  networkBlocked: false,
  pending: [],
  topUps: [],
  withdrawals: [],
  authorizations: [],
  overtaking: [],
  bought: {},
  controls: null,
  ended: {},
  entries: [],
  events: [],
  effects: [],
};

/** The state as the next round begins with it. */
export function atRest(state: CardState): CardState {
  return { ...state, ended: {}, entries: [], events: [], effects: [] };
}

/** What an issuance or a top-up holds of the account's money. A withdrawal holds nothing of it. */
export function heldBy({ what, cents, fees }: Pick<Pending, 'what' | 'cents' | 'fees'>): number {
  return what === 'withdrawal' ? 0 : cents + sumOf(fees);
}

/** The card's balance less what its authorizations and withdrawals hold. */
export function availableOn({ balance, authorizations, pending }: CardState): number {
  let held = 0;
  for (const authorization of authorizations) held += authorization.held;
  for (const { what, cents } of pending) if (what === 'withdrawal') held += cents;
  return balance - held;
}

export function tell(state: CardState, event: string): CardState {
  const shown = `${event}, card ${state.status} ${state.balance}/${availableOn(state)}`;
  return { ...state, events: [...state.events, shown] };
}

/** Changes the prepaid balance. @param late at any time after the operation was sent, even after its answer */
export function enter(state: CardState, op: string, entries: readonly Entry[], late = false): CardState {
  const moved = entries.filter(({ cents }) => cents !== 0);
  if (moved.length === 0) return state;
  const availableCents = moved.reduce((sum, { cents }) => sum + cents, 0);
  return {
    ...state,
    entries: [...state.entries, ...moved],
    effects: [...state.effects, { ...effect(op, { availableCents }), late }],
  };
}

/** What is free on a blocked card goes to the prepaid balance. On another card nothing happens. */
export function releaseIfBlocked(state: CardState, op: string, late = false): CardState {
  if (state.status !== 'blocked') return state;
  const cents = availableOn(state);
  const released = { ...state, balance: state.balance - cents };
  return enter(released, op, [{ type: 'card_release', cents, source: 'card' }], late);
}

export function begin(state: CardState, pending: Pending): CardState {
  const { op, what, id, cents, fees } = pending;
  const isNew = { status: 'pending', cents, failure: null, cardBalance: null } as const;
  return {
    ...state,
    status: what === 'card' ? 'funding_pending' : state.status,
    pending: [...state.pending, pending],
    topUps: what === 'topup' && id !== null ? [...state.topUps, { id, ...isNew, fees }] : state.topUps,
    withdrawals:
      what === 'withdrawal' && id !== null ? [...state.withdrawals, { id, ...isNew }] : state.withdrawals,
    effects: [
      ...state.effects,
      effect(op, {
        availableCents: -heldBy(pending),
        loadedCents: what === 'withdrawal' ? 0 : cents,
        openCards: what === 'card' ? 1 : 0,
      }),
    ],
  };
}

/** The network said yes: the money is on the card or, of a withdrawal, in the prepaid balance. */
export function succeed(state: CardState, pending: Pending): CardState {
  const { op, what, id, cents, fees } = pending;
  const source = id ?? '?';
  const left = { ...without(state, pending), ended: { ...state.ended, [op]: 'succeeded' } as const };
  if (what === 'withdrawal') {
    const paid = enter(
      { ...left, balance: state.balance - cents },
      op,
      [{ type: 'card_withdrawal', cents, source }],
      true,
    );
    const withdrawals = ended(paid.withdrawals, id, {
      status: 'succeeded',
      failure: null,
      cardBalance: paid.balance,
    });
    return tell({ ...paid, withdrawals }, `withdrawal.succeeded ${source}`);
  }
  const balance = state.balance + cents;
  const kinds = { card_activation: 'card_activation_fee', card_funding: 'card_funding_fee' } as const;
  const loaded: CardState = {
    ...left,
    status: what === 'card' ? 'active' : state.status,
    balance,
    topUps: ended(state.topUps, id, { status: 'succeeded', failure: null, cardBalance: balance }),
    entries: [
      ...state.entries,
      { type: what === 'card' ? 'card_issue' : 'card_topup', cents: -cents, source },
      ...fees.map(({ type, amount }) => ({
        type: kinds[type as keyof typeof kinds],
        cents: -amount,
        source,
      })),
    ],
  };
  return tell(loaded, `${what === 'card' ? 'card.issued' : 'topup.succeeded'} ${source}`);
}

/** Every held cent is free again. If it was not announced, nothing else is left. */
export function fail(
  state: CardState,
  pending: Pending,
  failure: string,
  end: 'failed' | 'card_blocked' = 'failed',
): CardState {
  const { op, what, id, cents, announced } = pending;
  const left = { ...without(state, pending), ended: { ...state.ended, [op]: end } };
  if (what === 'withdrawal') {
    const free = releaseIfBlocked(left, op, true);
    const withdrawals = ended(free.withdrawals, id, { status: 'failed', failure, cardBalance: free.balance });
    return announced ? tell({ ...free, withdrawals }, `withdrawal.failed ${id}`) : free;
  }
  const isCard = what === 'card';
  const freed: CardState = {
    ...left,
    status: !isCard ? state.status : announced ? 'failed' : 'none',
    failure: isCard && announced ? failure : state.failure,
    topUps: ended(state.topUps, id, { status: 'failed', failure, cardBalance: state.balance }),
    effects: [
      ...state.effects,
      {
        ...effect(op, { availableCents: heldBy(pending), loadedCents: -cents, openCards: isCard ? -1 : 0 }),
        late: true,
      },
    ],
  };
  return announced ? tell(freed, `${isCard ? 'card.issue_failed' : 'topup.failed'} ${id}`) : freed;
}

export function effect(op: string, changes: Partial<Effect>): Effect {
  return { op, late: false, availableCents: 0, openCards: 0, loadedCents: 0, ...changes };
}

function without(state: CardState, { op }: Pending): CardState {
  return { ...state, pending: state.pending.filter((other) => other.op !== op) };
}

function ended<T extends Withdrawal>(
  all: readonly T[],
  id: string | null,
  end: Pick<Withdrawal, 'status' | 'failure' | 'cardBalance'>,
): readonly T[] {
  return all.map((one) => (one.id === id ? { ...one, ...end } : one));
}
