import { DELIVERIES } from './deliveries.ts';
import { DEPOSITS } from './deposits.ts';
import { ISSUANCES } from './issuances.ts';
import type { Recording } from './recording.ts';
import { SCANS } from './scans.ts';
import { STATUS_CHANGES } from './status-changes.ts';
import { TOP_UPS } from './top-ups.ts';

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
 * Histories of earlier releases, which can't be recorded any more: of the one before the relay made every attempt, in which an
 * activity of the workflow did, and workflows wait for up to 30 days; of the one before eager starts, in which a request waited
 * for an update, and workflows wait for as long as the network stays silent.
 */
export const EARLIER: readonly string[] = [
  ...['delivered', 'given-up', 'gone', 'requeued', 'requeued-early'].map(
    (outcome) => `webhook-${outcome}-by-activity`,
  ),
  ...['refused', 'active', 'later-active', 'resolved-issued'].map((outcome) => `live-${outcome}-by-update`),
  ...['refused', 'succeeded', 'later-succeeded'].map((outcome) => `topup-live-${outcome}-by-update`),
  ...['frozen', 'refused', 'turn-later'].map((outcome) => `status-live-${outcome}-by-update`),
];

export const historyFile = (name: string): URL => new URL(`./histories/${name}.json`, import.meta.url);
