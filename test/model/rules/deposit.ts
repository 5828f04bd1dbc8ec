/** A transfer of the token to a deposit's address, as the chain has it. */
export interface Transfer {
  txHash: string;
  logIndex: number;
  microUsdt: bigint;
  blockNumber: number;
  blockTimeMs: number;
  /** On the run's clock. Nobody could see it earlier. */
  sentAt: number;
}

/** An operator's decision on what is in review. Unknown: its answer got lost, so it may or may not have been applied. */
export interface Decision {
  name: string;
  outcome: 'credited' | 'returned';
  taken: boolean | 'unknown';
  askedAt: number;
  heardAt: number;
}

/** The state of a deposit after one order of transfers and decisions. */
export interface DepositState {
  /** In the chain's order. */
  payments: readonly { transfer: Transfer; status: 'credited' | 'in_review' | 'returned' }[];
  /** Oldest first. Each is a change of the balance and an event, at a time between `from` and `to` on the run's clock. */
  credits: readonly { cents: number; from: number; to: number }[];
  /** Whether a payment of the exact amount was credited by itself. */
  isPaid: boolean;
  /** How often it has come to wait for an operator: each time is an event. */
  reviews: number;
}

export interface DepositTerms {
  amountCents: number;
  expiresAtMs: number;
}

export const UNPAID: DepositState = { payments: [], credits: [], isPaid: false, reviews: 0 };

const MICRO_PER_CENT = 10_000n;

/**
 * Every state that a deposit can be in after these transfers arrived, in the chain's order, while these decisions were made.
 * A transfer is found at any time after it was sent. Decisions that did not overlap were made one after the other.
 */
export function explainDeposit(
  terms: DepositTerms,
  state: DepositState,
  transfers: readonly Transfer[],
  decisions: readonly Decision[],
): DepositState[] {
  const [transfer, ...laterTransfers] = transfers;
  const isAhead = (decision: Decision) => !decisions.some(({ heardAt }) => heardAt < decision.askedAt);
  const decided = decisions.filter(isAhead).flatMap((decision) => {
    const others = decisions.filter((other) => other !== decision);
    return decide(state, decision).flatMap((next) => explainDeposit(terms, next, transfers, others));
  });
  const isSentLater = transfer !== undefined && decisions.some(({ heardAt }) => heardAt < transfer.sentAt);
  if (transfer !== undefined && !isSentLater) {
    return [...decided, ...explainDeposit(terms, arrive(terms, state, transfer), laterTransfers, decisions)];
  }
  return transfer === undefined && decisions.length === 0 ? [state] : decided;
}

/** docs/partners/funding.md: the first payment of the exact amount, not later than `expires_at`, is credited. */
function arrive(
  { amountCents, expiresAtMs }: DepositTerms,
  state: DepositState,
  transfer: Transfer,
): DepositState {
  const isExact = transfer.microUsdt === BigInt(amountCents) * MICRO_PER_CENT;
  if (!isExact || transfer.blockTimeMs > expiresAtMs || state.isPaid) {
    const isWaiting = state.payments.some(({ status }) => status === 'in_review');
    const reviews = state.reviews + (isWaiting ? 0 : 1);
    return { ...state, payments: [...state.payments, { transfer, status: 'in_review' }], reviews };
  }
  return {
    ...state,
    payments: [...state.payments, { transfer, status: 'credited' }],
    credits: [...state.credits, { cents: amountCents, from: transfer.sentAt, to: Number.POSITIVE_INFINITY }],
    isPaid: true,
  };
}

/**
 * Decides what is in review, rounded down to a cent. It is refused for less than a cent, if nothing is in review, and,
 * since these decisions name no version, if several payments would be sent back.
 */
function decide(state: DepositState, { outcome, taken, askedAt, heardAt }: Decision): DepositState[] {
  const settled = state.payments.map((payment) =>
    payment.status === 'in_review' ? { ...payment, status: outcome } : payment,
  );
  const waiting = state.payments.filter(({ status }) => status === 'in_review').length;
  const kept = sum(
    settled.filter(({ status }) => status !== 'returned').map(({ transfer }) => transfer.microUsdt),
  );
  const cents = Number(kept / MICRO_PER_CENT) - state.credits.reduce((total, one) => total + one.cents, 0);
  const isPossible = waiting > 0 && (outcome === 'returned' ? waiting === 1 : cents > 0);
  const credits =
    outcome === 'credited' ? [...state.credits, { cents, from: askedAt, to: heardAt }] : state.credits;
  return [
    ...(isPossible && taken !== false ? [{ ...state, payments: settled, credits }] : []),
    ...(!isPossible && taken !== true ? [state] : []),
    ...(isPossible && taken === 'unknown' ? [state] : []),
  ];
}

/** @param scannedToMs the time of the last block that was taken */
export function statusOf(state: DepositState, { expiresAtMs }: DepositTerms, scannedToMs: number): string {
  const statuses = state.payments.map(({ status }) => status);
  if (statuses.length === 0) return expiresAtMs < scannedToMs ? 'expired' : 'awaiting_payment';
  if (statuses.includes('in_review')) return 'needs_review';
  return statuses.includes('credited') ? 'confirmed' : 'returned';
}

export function receivedCents({ payments }: DepositState): number {
  return Number(sum(payments.map(({ transfer }) => transfer.microUsdt)) / MICRO_PER_CENT);
}

/** `25.00`, `0.123456`: as many places as needed, and at least two. */
export function decimalOf(microUsdt: bigint): string {
  const places = (microUsdt % 1_000_000n)
    .toString()
    .padStart(6, '0')
    .replace(/0{1,4}$/, '');
  return `${microUsdt / 1_000_000n}.${places}`;
}

function sum(values: readonly bigint[]): bigint {
  return values.reduce((total, one) => total + one, 0n);
}
