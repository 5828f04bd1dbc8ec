import type { WorkflowHandle } from '@temporalio/client';
import type { TestStack } from '../support/stack.ts';
import { DELIVERIES } from './deliveries.ts';
import { DEPOSITS } from './deposits.ts';
import { ISSUANCES } from './issuances.ts';
import { SCANS } from './scans.ts';
import { STATUS_CHANGES } from './status-changes.ts';
import { TOP_UPS } from './top-ups.ts';

/** Brings one outcome about. @returns its workflow, which ends without anything more being done */
export type Recording = (stack: TestStack) => Promise<WorkflowHandle>;

/** Every outcome of every workflow; each has its history in histories/, named as here. */
export const RECORDINGS: Record<string, Recording> = {
  ...ISSUANCES,
  ...TOP_UPS,
  ...STATUS_CHANGES,
  ...DELIVERIES,
  ...DEPOSITS,
  ...SCANS,
};

/**
 * Histories of the release before the relay made every attempt, in which an activity of the workflow did. They can't be
 * recorded any more; workflows of that release wait for up to 30 days.
 */
export const EARLIER: readonly string[] = ['delivered', 'given-up', 'gone', 'requeued', 'requeued-early'].map(
  (outcome) => `webhook-${outcome}-by-activity`,
);

export const historyFile = (name: string): URL => new URL(`./histories/${name}.json`, import.meta.url);
