/** Channels of NOTIFY. A notification is a hint that saves time; whoever waits must get along without it. */

/** Payload: the id of a claim that has an answer from now on. */
export const CLAIM_ANSWERED = 'claim_answered';

/** No payload: there are events to send. */
export const EVENT_WRITTEN = 'event_written';

/** No payload: deposits have payments to be judged, or news for their workflows. */
export const DEPOSIT_CHANGED = 'deposit_changed';
