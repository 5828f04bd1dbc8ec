import {
  type CardIssuanceActivities,
  type CardIssuanceDependencies,
  createCardIssuanceActivities,
} from './card-issuance.ts';
import {
  type CardStatusActivities,
  type CardStatusDependencies,
  createCardStatusActivities,
} from './card-status.ts';
import {
  type CardTopUpActivities,
  type CardTopUpDependencies,
  createCardTopUpActivities,
} from './card-top-up.ts';

/** What workflows on the task queue of cards can ask for. */
export interface CardActivities extends CardIssuanceActivities, CardTopUpActivities, CardStatusActivities {}

export interface CardActivityDependencies
  extends CardIssuanceDependencies,
    CardTopUpDependencies,
    CardStatusDependencies {}

/** Each activity takes a claim's id first. */
export function createCardActivities(dependencies: CardActivityDependencies): CardActivities {
  return {
    ...createCardIssuanceActivities(dependencies),
    ...createCardTopUpActivities(dependencies),
    ...createCardStatusActivities(dependencies),
  };
}
