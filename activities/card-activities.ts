import {
  type CardStatusActivities,
  type CardStatusDependencies,
  createCardStatusActivities,
} from './card-status.ts';
import { createFundingActivities, type FundingActivities, type FundingDependencies } from './fundings.ts';

/** What workflows on the task queue of cards can ask for. */
export interface CardActivities extends FundingActivities, CardStatusActivities {}

interface CardActivityDependencies extends FundingDependencies, CardStatusDependencies {}

/** Each activity takes a claim's id first. */
export function createCardActivities(dependencies: CardActivityDependencies): CardActivities {
  return { ...createFundingActivities(dependencies), ...createCardStatusActivities(dependencies) };
}
