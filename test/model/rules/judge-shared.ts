import { type Account, type Movement, utcDay } from '../account.ts';
import { Difference } from '../difference.ts';
import { type Effect, heldBy } from './card-state.ts';
import { type Operation, outcomeOf } from './operation.ts';
import { fundingFees } from './prices.ts';

interface Timed extends Effect {
  from: number;
  to: number;
}

/**
 * Whether the answers about what an account's cards share (funds, open cards, cents loaded today) are possible: at some moment
 * between question and answer, what was granted must have been there, and what was refused must have been missing. The clock
 * only tells what certainly happened before and what certainly had not begun.
 * @param effects of all that happened on the account's cards since the last quiet point
 */
export function judgeShared(
  account: Account,
  operations: readonly Operation[],
  effects: readonly Effect[],
): void {
  const byName = new Map(operations.map((operation) => [operation.name, operation]));
  const timed: Timed[] = effects.map((effect) => {
    const { askedAt = 0, heardAt = Number.POSITIVE_INFINITY } = byName.get(effect.op) ?? {};
    const isLate = effect.late && byName.get(effect.op)?.answer.status === 202;
    return { ...effect, from: askedAt, to: isLate ? Number.POSITIVE_INFINITY : heardAt };
  });
  for (const { name, cents, made, askedAt, heardAt } of account.movements) {
    if (!made) continue;
    timed.push({
      op: name,
      late: false,
      availableCents: cents,
      openCards: 0,
      loadedCents: 0,
      from: askedAt,
      to: heardAt,
    });
  }

  for (const operation of operations) {
    const wrong = judge(account, operation, timed);
    if (wrong !== undefined)
      throw new Difference(`${account.name}, ${operation.name}: ${wrong}`, lines(timed));
  }
  for (const movement of account.movements) {
    const wrong = judgeMovement(account, movement, timed);
    if (wrong !== undefined)
      throw new Difference(`${account.name}, ${movement.name}: ${wrong}`, lines(timed));
  }
}

function judge(account: Account, operation: Operation, timed: readonly Timed[]): string | undefined {
  const { question, answer } = operation;
  if (question.kind !== 'issue' && question.kind !== 'top_up') return undefined;
  const { prices } = account;
  const isSameDay = account.day === utcDay();
  const limits = isSameDay ? account.limits : { ...account.limits, maxLoadedCents: Number.MAX_SAFE_INTEGER };
  const { cents } = question;
  const isIssue = question.kind === 'issue';
  const what = isIssue ? 'card' : 'topup';
  const price = heldBy({ what, cents, fees: fundingFees(prices, what, cents) });
  const available = rangeOf('availableCents', account.availableCents, operation, timed);
  const open = rangeOf('openCards', account.openCards, operation, timed);
  const loaded = rangeOf('loadedCents', account.loadedCents, operation, timed);
  const isOutside = cents < limits.minCents || cents > limits.maxCents;
  const mayFit =
    !isOutside &&
    open.least + (isIssue ? 1 : 0) <= limits.maxOpenCards &&
    loaded.least + cents <= limits.maxLoadedCents;
  const mayExceed =
    isOutside ||
    open.most + (isIssue ? 1 : 0) > limits.maxOpenCards ||
    loaded.most + cents > limits.maxLoadedCents;
  const why = `${question.kind} of ${cents} for ${price}, ${JSON.stringify({ available, open, loaded, limits })}`;
  switch (outcomeOf(answer)) {
    case '201':
    case '202':
    case '402 provider_declined':
      if (available.most < price) return `granted without the funds: ${why}`;
      return mayFit ? undefined : `granted above a limit: ${why}`;
    case '402 insufficient_funds':
      if (!mayFit) return `402 although a limit comes first: ${why}`;
      return available.least < price ? undefined : `402 although there was enough: ${why}`;
    case '422 limit_exceeded':
      return mayExceed ? undefined : `422 although within the limits: ${why}`;
    default:
      return undefined;
  }
}

function judgeMovement(account: Account, movement: Movement, timed: readonly Timed[]): string | undefined {
  if (movement.cents > 0) return movement.made ? undefined : 'a credit was refused';
  const available = rangeOf('availableCents', account.availableCents, movement, timed);
  const isPossible = movement.made ? available.most >= -movement.cents : available.least < -movement.cents;
  if (isPossible) return undefined;
  return `a debit of ${-movement.cents} was ${movement.made ? 'made' : 'refused'}: ${JSON.stringify({ available })}`;
}

/** The least and the most there can have been between question and answer, without the operation's own effect. */
function rangeOf(
  field: 'availableCents' | 'openCards' | 'loadedCents',
  start: number,
  { name, askedAt, heardAt }: { name: string; askedAt: number; heardAt: number },
  timed: readonly Timed[],
): { least: number; most: number } {
  const range = { least: start, most: start };
  for (const { op, from, to, [field]: change } of timed) {
    if (op === name || from > heardAt) continue;
    const isCertain = to < askedAt;
    if (isCertain || change < 0) range.least += change;
    if (isCertain || change > 0) range.most += change;
  }
  return range;
}

function lines(timed: readonly Timed[]): string[] {
  return timed.map(({ op, from, to, availableCents, openCards, loadedCents }) => {
    return `${op} [${from}-${to}] available ${availableCents}, open ${openCards}, loaded ${loadedCents}`;
  });
}
