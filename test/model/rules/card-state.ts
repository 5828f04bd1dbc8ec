import { type Fee, sumOf } from './prices.ts';

/** The state of a card and its money after one serial order of the operations. */
export interface CardState {
  status: 'none' | 'funding_pending' | 'active' | 'frozen' | 'blocked' | 'failed';
  balance: number;
  failure: string | null;
  /** The network has already blocked it, but we have not. */
  networkBlocked: boolean;
  /** The issuances and top-ups that hold money. */
  pending: readonly Pending[];
  /** Those whose request was answered with 201 or 202. */
  topUps: readonly TopUp[];
  /** How the operations that began have ended, by their names. Like all that follows, since the last quiet point. */
  ended: Readonly<Record<string, 'refused' | 'succeeded' | 'failed' | 'card_blocked'>>;
  entries: readonly Entry[];
  /** `type subject` */
  events: readonly string[];
  effects: readonly Effect[];
}

/** An issuance or a top-up in flight. */
export interface Pending {
  /** The operation's name. */
  op: string;
  what: 'card' | 'topup';
  /** Null if the request failed, so that its id is unknown. */
  id: string | null;
  cents: number;
  fees: readonly Fee[];
  /** Answered with 202, so its failure is an event, and the resource can still be read. */
  announced: boolean;
  /** Begun after the network had blocked the card. */
  tooLate: boolean;
}

interface TopUp {
  id: string;
  status: 'pending' | 'succeeded' | 'failed';
  cents: number;
  fees: readonly Fee[];
  failure: string | null;
  /** The card's balance when it ended. */
  cardBalance: number | null;
}

/** A change of the prepaid balance. */
export interface Entry {
  type: string;
  cents: number;
  /** The id of what it came from. */
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
  ended: {},
  entries: [],
  events: [],
  effects: [],
};

/** The state as the next round begins with it. */
export function atRest(state: CardState): CardState {
  return { ...state, ended: {}, entries: [], events: [], effects: [] };
}

export const heldBy = ({ cents, fees }: Pick<Pending, 'cents' | 'fees'>): number => cents + sumOf(fees);

/** Holds the money of an issuance or a top-up. */
export function begin(state: CardState, pending: Pending): CardState {
  const { op, what, id, cents, fees } = pending;
  return {
    ...state,
    status: what === 'card' ? 'funding_pending' : state.status,
    pending: [...state.pending, pending],
    topUps:
      what === 'topup' && id !== null
        ? [...state.topUps, { id, status: 'pending', cents, fees, failure: null, cardBalance: null }]
        : state.topUps,
    effects: [
      ...state.effects,
      effect(op, {
        availableCents: -heldBy(pending),
        loadedCents: cents,
        openCards: what === 'card' ? 1 : 0,
      }),
    ],
  };
}

/** The money is on the card. */
export function succeed(state: CardState, pending: Pending): CardState {
  const { op, what, id, cents, fees } = pending;
  const source = id ?? '?';
  const balance = state.balance + cents;
  const kinds = { card_activation: 'card_activation_fee', card_funding: 'card_funding_fee' } as const;
  return {
    ...without(state, pending),
    status: what === 'card' ? 'active' : state.status,
    balance,
    topUps: endTopUp(state, pending, { status: 'succeeded', failure: null, cardBalance: balance }),
    ended: { ...state.ended, [op]: 'succeeded' },
    entries: [
      ...state.entries,
      { type: what === 'card' ? 'card_issue' : 'card_topup', cents: -cents, source },
      ...fees.map(({ type, amount }) => ({
        type: kinds[type as keyof typeof kinds],
        cents: -amount,
        source,
      })),
    ],
    events: [...state.events, `${what === 'card' ? 'card.issued' : 'topup.succeeded'} ${source}`],
  };
}

/** Every held cent is free again. If it was not announced, nothing else is left. */
export function fail(
  state: CardState,
  pending: Pending,
  failure: string,
  ended: 'failed' | 'card_blocked' = 'failed',
): CardState {
  const { op, what, id, cents, announced } = pending;
  const type = what === 'card' ? 'card.issue_failed' : 'topup.failed';
  const isCard = what === 'card';
  return {
    ...without(state, pending),
    status: !isCard ? state.status : announced ? 'failed' : 'none',
    failure: isCard && announced ? failure : state.failure,
    topUps: endTopUp(state, pending, { status: 'failed', failure, cardBalance: state.balance }),
    ended: { ...state.ended, [op]: ended },
    events: announced ? [...state.events, `${type} ${id}`] : state.events,
    effects: [
      ...state.effects,
      {
        ...effect(op, { availableCents: heldBy(pending), loadedCents: -cents, openCards: isCard ? -1 : 0 }),
        late: true,
      },
    ],
  };
}

export function effect(op: string, changes: Partial<Effect>): Effect {
  return { op, late: false, availableCents: 0, openCards: 0, loadedCents: 0, ...changes };
}

function without(state: CardState, { op }: Pending): CardState {
  return { ...state, pending: state.pending.filter((other) => other.op !== op) };
}

function endTopUp(state: CardState, { id }: Pending, end: Partial<TopUp>): readonly TopUp[] {
  return state.topUps.map((topUp) => (topUp.id === id ? { ...topUp, ...end } : topUp));
}
