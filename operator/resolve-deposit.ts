import { resolveDeposit as resolve } from '../commands/deposits/resolve-deposit.ts';
import { Refusal } from '../commands/idempotency/refusal.ts';
import { announceDeposits, announceEvents } from '../commands/webhooks/announce-events.ts';
import type { DepositDecision, WhyNotResolved } from '../domain/deposit.ts';
import { type DepositDetail, readDeposit } from './reads/read-deposits.ts';
import type { Session } from './session.ts';

/**
 * Settles what arrived for a deposit and waits for review. Its workflow is told by a worker, as of every change.
 * @returns the deposit as it then is, and the cents that were added to the balance
 * @throws Refusal where nothing waits, it has changed since, or it can't be credited.
 */
export async function resolveDeposit(
  session: Session,
  depositId: string,
  decision: DepositDecision,
): Promise<{ deposit: DepositDetail; creditedCents: number }> {
  const orm = await session.orm();
  const verdict = await resolve(await session.operator(), { depositId, ...decision });
  // Refuses an id that nothing has.
  const deposit = await readDeposit(orm, depositId);
  if (verdict === null || !verdict.resolved)
    throw new Refusal(`Nothing was changed. ${whyNot(deposit, verdict?.because ?? 'nothing_in_review')}`);
  if (verdict.repeated)
    throw new Refusal(`You have already resolved ${depositId} this way; nothing was changed.`);
  await announceEvents(orm);
  await announceDeposits(orm);
  return { deposit, creditedCents: verdict.creditedCents };
}

function whyNot({ id, status, version }: DepositDetail, because: WhyNotResolved): string {
  switch (because) {
    case 'nothing_in_review':
      return `${id} has no payment in review, it is ${status}: see "operator deposit show ${id}".`;
    case 'changed_meanwhile':
      return `${id} has changed and is now at version ${version}: check it with "operator deposit show ${id}", then decide again.`;
    case 'below_a_cent':
      return (
        `Less than a cent of what arrived for ${id} is not credited yet. Use --returned: the payment stays recorded, and ` +
        'nothing is owed.'
      );
    case 'past_the_largest_balance':
      return 'The balance would exceed its maximum: send the payment back, and use --returned.';
    case 'unreadable_reason':
      return 'The reason must be 1 to 500 characters on one line.';
  }
}
