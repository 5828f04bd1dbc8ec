import {
  createIssuanceActivities,
  type IssuanceActivities,
  type IssuanceDependencies,
} from '../cards/activities.ts';
import {
  type CardStatusActivities,
  type CardStatusDependencies,
  createCardStatusActivities,
} from '../cards/status-activities.ts';
import {
  createTopUpActivities,
  type TopUpActivities,
  type TopUpActivityDependencies,
} from '../cards/transfers/top-up-activities.ts';
import {
  createWithdrawalActivities,
  type WithdrawalActivities,
  type WithdrawalActivityDependencies,
} from '../cards/transfers/withdrawal-activities.ts';

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
