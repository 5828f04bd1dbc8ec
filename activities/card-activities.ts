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
  createTransferActivities,
  type TransferActivities,
  type TransferActivityDependencies,
} from '../cards/transfers/activities.ts';

/** The activities on the cards task queue. */
export interface CardActivities extends IssuanceActivities, TransferActivities, CardStatusActivities {}

interface CardActivityDependencies
  extends IssuanceDependencies,
    TransferActivityDependencies,
    CardStatusDependencies {}

/** The first argument of every activity is the claim's id. */
export function createCardActivities(dependencies: CardActivityDependencies): CardActivities {
  return {
    ...createIssuanceActivities(dependencies),
    ...createTransferActivities(dependencies),
    ...createCardStatusActivities(dependencies),
  };
}
