import {
  type CardStatusActivities,
  type CardStatusDependencies,
  createCardStatusActivities,
} from './card-status.ts';
import { createIssuanceActivities, type IssuanceActivities, type IssuanceDependencies } from './issuance.ts';
import { createTopUpActivities, type TopUpActivities, type TopUpActivityDependencies } from './topup.ts';
import {
  createWithdrawalActivities,
  type WithdrawalActivities,
  type WithdrawalActivityDependencies,
} from './withdrawal.ts';

/** The activities on the cards task queue. */
export interface CardActivities
  extends IssuanceActivities,
    TopUpActivities,
    WithdrawalActivities,
    CardStatusActivities {}

interface CardActivityDependencies
  extends IssuanceDependencies,
    TopUpActivityDependencies,
    WithdrawalActivityDependencies,
    CardStatusDependencies {}

/** The first argument of every activity is the claim's id. */
export function createCardActivities(dependencies: CardActivityDependencies): CardActivities {
  return {
    ...createIssuanceActivities(dependencies),
    ...createTopUpActivities(dependencies),
    ...createWithdrawalActivities(dependencies),
    ...createCardStatusActivities(dependencies),
  };
}
