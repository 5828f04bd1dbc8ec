-- Up Migration

-- What is parked, oldest first: its endpoint gets it once it is enabled, a few at a time (docs/decisions/webhook-relay.md).
-- squawk-ignore require-concurrent-index-creation -- It has only what is parked, and is built with one scan, as those of 0073 are.
CREATE INDEX IF NOT EXISTS delivery_parked ON delivery (partner_id, mode, endpoint_id, event_id) WHERE status = 'parked';
