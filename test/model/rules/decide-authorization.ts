import type { Answer } from '../../support/stack.ts';
import { type Authorization, asking, holding, inWords, shown, shownBy } from './authorization.ts';
import { availableOn, type CardState, releaseIfBlocked, tell } from './card-state.ts';
import { type Booking, book, has, reasonAgainst } from './decide-transaction.ts';
import { type Circumstances, dayOf, outcomeOf, type Question } from './operation.ts';
import { buy, unbuy } from './spending.ts';

type Asked<Kind extends Question['kind']> = {
  op: string;
  question: Question & { kind: Kind };
  answer: Answer;
};

/** A merchant asks for money (docs/partners/authorizations.md). */
export function decideAuthorize(
  state: CardState,
  { op, question, answer }: Asked<'authorize' | 'increment'>,
  circumstances: Circumstances,
): CardState[] {
  const { cents, merchant, networkId } = question;
  const { mode, accountControls, authorizations } = circumstances;
  const outcome = outcomeOf(answer);
  if (networkId !== null && find(state, networkId) !== undefined)
    return outcome === '422 idempotency_conflict' ? [state] : [];
  if (outcome !== (mode === 'test' ? '201' : '200')) return [];
  if (cents === 0) {
    const today = new Date().toISOString().slice(0, 10);
    const nothing = { cents, wholeCents: cents, needed: cents, merchant, day: today };
    const isSaid = isDecision(answer, reasonAgainst(state, accountControls, nothing), null);
    return isSaid ? [state] : [];
  }
  const id: string | null = mode === 'test' ? answer.json.id : answer.json.authorizationId;
  const listed = authorizations.get(id ?? '');
  if (id === null || listed === undefined || find(state, id) !== undefined) return [];

  const day = dayOf(listed);
  const overtaking = state.overtaking.filter((clearing) => clearing.networkId === networkId);
  const settled = overtaking.reduce((sum, clearing) => sum + clearing.cents, 0);
  const isOver = overtaking.some(({ final }) => final);
  const held = isOver ? 0 : Math.max(0, cents - settled);
  const counts = (held > 0 ? cents : settled) - settled;
  const asked = { cents: counts, wholeCents: cents, needed: held, merchant, day };
  const reason = reasonAgainst(state, accountControls, asked);
  const requested: Authorization = {
    id,
    networkId,
    status: 'declined',
    amount: cents,
    held: 0,
    settled: 0,
    reason,
    merchant,
    requests: [asking('authorization', cents, reason)],
    day,
  };
  if (mode === 'live' && !isDecision(answer, reason, id)) return [];
  if (reason !== null) {
    if (!shows(answer, requested, mode)) return [];
    const created = add(state, requested);
    return decline(created, { op, authorization: requested, cents, reason, merchant }, circumstances, true);
  }
  const approved = holding({ ...requested, settled }, held, 'closed');
  const isLinked = overtaking.every(
    ({ transactionId }) => circumstances.transactions.get(transactionId)?.authorization_id === id,
  );
  if (!shows(answer, approved, mode) || !isLinked) return [];
  let linked = state;
  for (const { transactionId } of overtaking) linked = unbuy(linked, transactionId);
  const left = state.overtaking.filter((clearing) => clearing.networkId !== networkId);
  const created = add({ ...linked, overtaking: left }, approved);
  return [tell(created, `card.authorization.created ${inWords(approved)}`)];
}

export function decideIncrement(
  state: CardState,
  asked: Asked<'increment'>,
  circumstances: Circumstances,
): CardState[] {
  const { op, question, answer } = asked;
  const { mode, accountControls } = circumstances;
  const before = find(state, question.authorization);
  if (before === undefined) return mode === 'live' ? decideAuthorize(state, asked, circumstances) : [];
  if (mode === 'test' && before.status !== 'pending') return refused(state, answer, before);
  if (outcomeOf(answer) !== '200') return [];
  const { cents } = question;
  const wholeCents = before.amount + cents;
  const { merchant, day } = before;
  const reason =
    before.status === 'pending'
      ? reasonAgainst(state, accountControls, { cents, wholeCents, needed: cents, merchant, day })
      : 'authorization_not_pending';
  const more = reason === null ? cents : 0;
  const authorization: Authorization = {
    ...before,
    amount: before.amount + more,
    held: before.held + more,
    requests: [...before.requests, asking('increment', cents, reason)],
  };
  if (mode === 'live' && !isDecision(answer, reason, before.id)) return [];
  if (!shows(answer, authorization, mode)) return [];
  const changed = replace(state, authorization);
  if (reason !== null) {
    // It is decided by the merchant that asked first, and shows the one that the network names now.
    const declined = {
      op,
      authorization,
      cents,
      reason,
      merchant: mode === 'live' ? question.merchant : merchant,
    };
    return decline(changed, declined, circumstances, false);
  }
  return [tell(changed, `card.authorization.updated ${inWords(authorization)}`)];
}

export function decideClear(
  state: CardState,
  { op, question, answer }: Asked<'clear'>,
  circumstances: Circumstances,
): CardState[] {
  const { mode, transactions } = circumstances;
  const { authorization: ref, final } = question;
  const found = ref === null ? undefined : find(state, ref);
  if (mode === 'test' && found?.status === 'declined') return refused(state, answer, found);
  // The network can take money for what was declined, too. Then it is a clearing without an authorization.
  const before = found?.status === 'declined' ? undefined : found;
  if (mode === 'test' && ref !== null && before === undefined) return [];
  const left = before === undefined ? 0 : Math.max(0, before.amount - before.settled);
  const cents = question.cents ?? left;
  const outcome = outcomeOf(answer);
  if (cents === 0) return outcome === '400 validation_failed' ? [state] : [];
  if (outcome !== (mode === 'test' ? '201' : '200') || !ISSUED.includes(state.status)) return [];
  const id: string = mode === 'test' ? answer.json.id : answer.json.transactionId;
  const told = transactions.get(id);
  if (told === undefined) return [];

  const fromHold = Math.min(cents, before?.held ?? 0);
  const fromAvailable = Math.min(cents - fromHold, availableOn(state));
  let after: CardState = { ...state, balance: state.balance - fromHold - fromAvailable };
  if (before !== undefined) {
    const held = final ? 0 : before.held - fromHold;
    const cleared = holding({ ...before, settled: before.settled + cents }, held, 'closed');
    after = replace(after, cleared);
    if (before.held > 0) after = releaseIfBlocked(after, op);
    after = tell(after, `card.authorization.updated ${inWords(cleared)}`);
  }
  const merchant = mode === 'test' && before !== undefined ? before.merchant : question.merchant;
  const day = dayOf(told);
  const overtakes = found === undefined && ref !== null;
  if (before === undefined) after = buy(after, id, { day, category: merchant.category_code, cents });
  if (overtakes) {
    const clearing = { networkId: ref, transactionId: id, cents, final };
    after = { ...after, overtaking: [...after.overtaking, clearing] };
  }
  const booking: Booking = {
    op,
    id,
    type: 'purchase',
    cents,
    reason: null,
    merchant,
    partnerCents: cents - fromHold - fromAvailable,
    authorizationId: overtakes ? undefined : (before?.id ?? null),
  };
  const booked = book(after, booking, { circumstances, answers: mode === 'test' ? [answer.json] : [] });
  return booked === null ? [] : [booked];
}

/** A merchant gives back what it asked for, or its time is over. */
export function decideGiveBack(
  state: CardState,
  { op, question, answer }: Asked<'reverse' | 'expire' | 'lapse'>,
  { mode }: Circumstances,
): CardState[] {
  const outcome = outcomeOf(answer);
  const before = find(state, question.authorization);
  if (before === undefined) {
    // It is kept, since the request may still arrive; the client has dismissed it.
    const expected = question.kind === 'lapse' ? '200' : '202';
    return mode === 'live' && outcome === expected ? [state] : [];
  }
  const isAsked = mode === 'test' && question.kind !== 'lapse';
  if (before.status !== 'pending') {
    if (isAsked) return refused(state, answer, before);
    return outcome === '200' ? [state] : [];
  }
  const asked = question.kind === 'reverse' ? (question.cents ?? before.held) : before.held;
  if (isAsked && asked > before.held) return outcome === '400 validation_failed' ? [state] : [];
  if (outcome !== '200') return [];
  const back = Math.min(asked, before.held);
  const isReversal = question.kind === 'reverse';
  const amount = isReversal ? before.amount - back : before.amount;
  const after = holding({ ...before, amount }, before.held - back, isReversal ? 'reversed' : 'expired');
  const isSaid = isAsked ? shows(answer, after, mode) : true;
  const isNamed = mode === 'test' || question.kind === 'lapse' || answer.json.authorizationId === before.id;
  if (!isSaid || !isNamed) return [];
  const released = releaseIfBlocked(replace(state, after), op);
  return [tell(released, `card.authorization.updated ${inWords(after)}`)];
}

const ISSUED: CardState['status'][] = ['active', 'frozen', 'blocked'];

/** By our id or the network's. */
function find({ authorizations }: CardState, ref: string): Authorization | undefined {
  return authorizations.find(({ id, networkId }) => id === ref || networkId === ref);
}

function add(state: CardState, authorization: Authorization): CardState {
  return { ...state, authorizations: [...state.authorizations, authorization] };
}

function replace(state: CardState, authorization: Authorization): CardState {
  const authorizations = state.authorizations.map((one) =>
    one.id === authorization.id ? authorization : one,
  );
  return { ...state, authorizations };
}

/** A decline is a transaction, which no answer names: it can be any of those that are listed like this. */
function decline(
  state: CardState,
  declined: Pick<Booking, 'op' | 'cents' | 'reason' | 'merchant'> & { authorization: Authorization },
  circumstances: Circumstances,
  isNew: boolean,
): CardState[] {
  const { op, authorization, cents, reason, merchant } = declined;
  const created = isNew ? tell(state, `card.authorization.created ${inWords(authorization)}`) : state;
  const booking: Omit<Booking, 'id'> = {
    op,
    type: 'decline',
    cents,
    reason,
    merchant,
    partnerCents: 0,
    authorizationId: authorization.id,
  };
  return circumstances.declines.flatMap((id) => {
    if (state.events.some((event) => event.startsWith(`card.transaction.created ${id},`))) return [];
    return book(created, { ...booking, id }, { circumstances, answers: [] }) ?? [];
  });
}

function refused(state: CardState, answer: Answer, { status }: Authorization): CardState[] {
  const isSo = outcomeOf(answer) === '409 invalid_state';
  const isNamed = isSo && answer.json.error.message.includes(status);
  return isNamed ? [state] : [];
}

function isDecision({ json }: Answer, reason: string | null, authorizationId: string | null): boolean {
  return has(json, { approved: reason === null, declineReason: reason, authorizationId });
}

/** The answer to the network shows no authorization. */
function shows(answer: Answer, authorization: Authorization, mode: Circumstances['mode']): boolean {
  if (mode === 'live') return true;
  return JSON.stringify(shownBy(answer.json)) === JSON.stringify(shown(authorization));
}
