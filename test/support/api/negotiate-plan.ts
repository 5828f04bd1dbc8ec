import { negotiateFees, negotiateLimits } from '../../../commands/accounts/partners.ts';
import type { FeePlan } from '../../../domain/fees.ts';
import type { TestPartner, TestStack } from '../stack.ts';
import { FREE, MAX } from './arbitrary-fees.ts';

/** Gives an account these fees and no others, and limits that no amount meets. */
export async function negotiatePlan(
  { operator }: TestStack,
  { id }: TestPartner,
  plan: Partial<FeePlan>,
): Promise<void> {
  await negotiateFees(operator, id, { ...FREE, ...plan });
  await negotiateLimits(operator, id, { minCardCents: 1, maxCardCents: MAX, maxIssuedPerDayCents: MAX });
}
