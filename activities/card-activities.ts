import {
  createFundingActivities,
  type FundingDependencies,
  type IssuanceActivities,
  type TransferActivities,
} from '../cards/activities.ts';
import {
  type CardStatusActivities,
  type CardStatusDependencies,
  createCardStatusActivities,
} from '../cards/status-activities.ts';

/** The activities on the cards task queue. */
export interface CardActivities extends IssuanceActivities, TransferActivities, CardStatusActivities {}

interface CardActivityDependencies extends FundingDependencies, CardStatusDependencies {}

/** The first argument of every activity is the claim's id. */
export function createCardActivities(dependencies: CardActivityDependencies): CardActivities {
  return {
    ...createFundingActivities(dependencies),
    ...createCardStatusActivities(dependencies),
  };
}
