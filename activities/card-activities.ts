import {
  type CardStatusActivities,
  type CardStatusDependencies,
  createCardStatusActivities,
} from './card-status.ts';
import { createFundingActivities, type FundingActivities, type FundingDependencies } from './fundings.ts';

/** The activities on the cards task queue. */
export interface CardActivities extends FundingActivities, CardStatusActivities {}

interface CardActivityDependencies extends FundingDependencies, CardStatusDependencies {}

/** The first argument of every activity is the claim's id. */
export function createCardActivities(dependencies: CardActivityDependencies): CardActivities {
  return { ...createFundingActivities(dependencies), ...createCardStatusActivities(dependencies) };
}
