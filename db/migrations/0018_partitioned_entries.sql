-- Up Migration

-- The ledger's entries, by the year of their transaction: as 0016 did with events. No process may drop a part of them.
-- No row is rewritten: to the entries and transfers that are there the day of this migration is given. One index is built
-- while the ledger is locked.
LOCK TABLE ledger.transfer, ledger.entry IN ACCESS EXCLUSIVE MODE;

-- The day of the transaction that made it, in UTC. A transfer and its entries agree on it, so that the entries of one
-- transfer are in one partition, where the primary key sees them all.
DO $$
BEGIN
  EXECUTE format('ALTER TABLE ledger.transfer ADD booked_on date NOT NULL DEFAULT %L', (now() AT TIME ZONE 'UTC')::date);
  EXECUTE format('ALTER TABLE ledger.entry ADD booked_on date NOT NULL DEFAULT %L', (now() AT TIME ZONE 'UTC')::date);
END $$;
ALTER TABLE ledger.transfer ALTER booked_on SET DEFAULT (now() AT TIME ZONE 'UTC')::date;
ALTER TABLE ledger.entry ALTER booked_on SET DEFAULT (now() AT TIME ZONE 'UTC')::date;

DROP TRIGGER balanced ON ledger.entry;
ALTER TABLE ledger.entry RENAME TO entry_first;
ALTER TABLE ledger.entry_first DROP CONSTRAINT entry_pkey, ADD PRIMARY KEY (transfer_id, side, booked_on);
ALTER INDEX ledger.entry_chain RENAME TO entry_first_chain;
REVOKE ALL ON ledger.entry_first FROM card_issuing_app, card_issuing_operator;

CREATE TABLE ledger.entry (LIKE ledger.entry_first INCLUDING ALL EXCLUDING INDEXES,
  PRIMARY KEY (transfer_id, side, booked_on)) PARTITION BY RANGE (booked_on);
-- The chain of an account's balances is unique in each year. From one year to the next it is the account's row that counts.
CREATE TABLE ledger.entry_default PARTITION OF ledger.entry DEFAULT;
CREATE UNIQUE INDEX entry_default_chain ON ledger.entry_default (account_id, account_version)
  WHERE account_version IS NOT NULL;

DO $$
BEGIN
  EXECUTE format('ALTER TABLE ledger.entry ATTACH PARTITION ledger.entry_first FOR VALUES FROM (MINVALUE) TO (%L)',
    (date_trunc('year', now() AT TIME ZONE 'UTC') + interval '1 year')::date);
END $$;

-- Of the whole, and of each partition if it is named itself. The other trigger every partition has from the whole.
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger.entry
  FOR EACH STATEMENT EXECUTE FUNCTION ledger.deny_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger.entry_default
  FOR EACH STATEMENT EXECUTE FUNCTION ledger.deny_change();
CREATE CONSTRAINT TRIGGER balanced AFTER INSERT ON ledger.entry DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION ledger.check_entry();

-- As they were, with the day.
CREATE OR REPLACE FUNCTION ledger.check_transfer() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
  expected integer := CASE WHEN NEW.phase IN ('single', 'post') THEN 2 ELSE 0 END;
  present integer;
BEGIN
  SELECT count(*) INTO present FROM ledger.entry e WHERE e.transfer_id = NEW.id AND e.booked_on = NEW.booked_on;
  IF present <> expected THEN
    RAISE EXCEPTION 'transfer % (%) has % entries, it needs %', NEW.id, NEW.phase, present, expected
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION ledger.check_entry() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
BEGIN
  PERFORM FROM ledger.transfer t
    WHERE t.id = NEW.transfer_id AND t.phase IN ('single', 'post') AND t.amount = NEW.amount
      AND t.booked_on = NEW.booked_on
      AND NEW.account_id = CASE NEW.side WHEN 'debit' THEN t.debit_id ELSE t.credit_id END;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the % entry of transfer % does not match it', NEW.side, NEW.transfer_id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NULL;
END $$;

DO $$
BEGIN
  WHILE public.make_partition() IS NOT NULL LOOP END LOOP;
END $$;

GRANT SELECT ON ledger.entry TO card_issuing_app, card_issuing_operator;
