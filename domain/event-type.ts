/** The kinds of events this service writes (partner-api.md, "Event kinds"). */
export type EventType = 'card.issued' | 'card.issue_failed';
