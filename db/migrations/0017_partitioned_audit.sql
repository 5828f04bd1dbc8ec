-- Up Migration

-- The audit log, by year: as 0016 did with events. No process may drop a part of it.
ALTER TABLE audit_entry RENAME TO audit_entry_first;
ALTER INDEX audit_entry_pkey RENAME TO audit_entry_first_pkey;
ALTER INDEX audit_entry_at RENAME TO audit_entry_first_at;
REVOKE ALL ON audit_entry_first FROM card_issuing_app, card_issuing_operator;

CREATE TABLE audit_entry (LIKE audit_entry_first INCLUDING ALL EXCLUDING INDEXES, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE INDEX audit_entry_at ON audit_entry (at);
CREATE TABLE audit_entry_default PARTITION OF audit_entry DEFAULT;

DO $$
DECLARE
  until text := 'aud_' || id_time(date_trunc('year', now(), 'UTC') + interval '1 year');
BEGIN
  WITH ahead AS (DELETE FROM audit_entry_first WHERE id >= until RETURNING *)
    INSERT INTO audit_entry SELECT * FROM ahead;
  EXECUTE format('ALTER TABLE audit_entry ATTACH PARTITION audit_entry_first FOR VALUES FROM (MINVALUE) TO (%L)', until);
  WHILE make_partition() IS NOT NULL LOOP END LOOP;
END $$;

GRANT SELECT, INSERT ON audit_entry TO card_issuing_app, card_issuing_operator;
