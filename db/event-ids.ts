import { lowestId } from './new-id.ts';

/** An event's id is made within a moment of its time. */
const SLACK_MS = 60_000;

/**
 * Bounds of the ids of events by their time, so that the index of the ids finds a range of time: every event created at
 * `at` or later has an id from {@link eventIdsFrom} on, every one created until then one below {@link eventIdsUntil}.
 * The other way round it holds only roughly: compare `created_at` as well.
 */
export const eventIdsFrom = (at: Date): string => lowestId('evt', new Date(at.getTime() - SLACK_MS));

export const eventIdsUntil = (at: Date): string => lowestId('evt', new Date(at.getTime() + SLACK_MS));
