import {
  type CardStatusActivities,
  type CardStatusDependencies,
  createCardStatusActivities,
} from './card-status.ts';
import { createIssuanceActivities, type IssuanceActivities, type IssuanceDependencies } from './issuance.ts';
import { createTopUpActivities, type TopUpActivities, type TopUpDependencies } from './topup.ts';

/** The activities on the cards task queue. */
export interface CardActivities extends IssuanceActivities, TopUpActivities, CardStatusActivities {}

interface CardActivityDependencies extends IssuanceDependencies, TopUpDependencies, CardStatusDependencies {}

/** The first argument of every activity is the claim's id. */
export function createCardActivities(dependencies: CardActivityDependencies): CardActivities {
  return {
    ...createIssuanceActivities(dependencies),
    ...createTopUpActivities(dependencies),
    ...createCardStatusActivities(dependencies),
  };
}
