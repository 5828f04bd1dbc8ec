-- Up Migration

-- What operators did, by whom, and from where. Partitioned by year (docs/decisions/time-partitions.md).
-- Nobody may drop a partition.
CREATE TABLE audit_entry (
  id text COLLATE "C" PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT now(),
  actor text NOT NULL,
  action text NOT NULL,
  subject text NOT NULL,
  detail jsonb NOT NULL,
  -- As the session and the server know it.
  operator text,
  os_user text,
  host text,
  database_login text
) PARTITION BY RANGE (id);
-- Operators look for everything about one thing, and for everything that one person did.
CREATE INDEX audit_entry_at ON audit_entry (at);
CREATE INDEX audit_entry_subject ON audit_entry (subject, at);
CREATE INDEX audit_entry_actor ON audit_entry (actor, at);
CREATE TABLE audit_entry_default PARTITION OF audit_entry DEFAULT;

-- Entries that are committed but not in the chain yet (docs/decisions/audit-chain.md).
CREATE TABLE audit_unchained (
  id text COLLATE "C" PRIMARY KEY,
  queued_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Each link's hash covers the link before it, so a change to an entry, or a missing or inserted one, is
-- noticed.
CREATE TABLE audit_chain (
  seq bigint PRIMARY KEY,
  id text COLLATE "C" NOT NULL UNIQUE,
  -- SHA-256 of the entry's content.
  digest bytea NOT NULL,
  hash bytea NOT NULL,
  chained_at timestamptz NOT NULL
);
CREATE INDEX audit_chain_chained_at ON audit_chain (chained_at);

GRANT SELECT, INSERT ON audit_entry TO card_issuing_app, card_issuing_operator;
GRANT SELECT ON audit_unchained TO card_issuing_operator;
GRANT SELECT ON audit_chain TO card_issuing_operator;
