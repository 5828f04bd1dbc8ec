-- Up Migration

-- Whether the event webhook_endpoint.failing is still to be written: a run of failures can end before a worker looks.
ALTER TABLE webhook_endpoint ADD COLUMN failing_owed boolean NOT NULL DEFAULT false;
UPDATE webhook_endpoint SET failing_owed = true, failing_told = true WHERE consecutive_failures >= 10 AND NOT failing_told;
-- squawk-ignore require-concurrent-index-creation -- The table is small.
CREATE INDEX webhook_endpoint_owed ON webhook_endpoint (id) WHERE failing_owed;
-- squawk-ignore require-concurrent-index-deletion
DROP INDEX webhook_endpoint_to_tell;
GRANT UPDATE (failing_owed) ON webhook_endpoint TO card_issuing_worker;
