-- Up Migration

-- What a kept message moves, in cents, for "attention list"; NULL if it can't be read, and for what was kept before.
ALTER TABLE network_message ADD amount_cents bigint;
