-- Trigger of the ledger's tables: refuses the change.
CREATE OR REPLACE FUNCTION ledger.deny_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'ledger.% is append-only, % is not allowed: correct it with another transfer', TG_TABLE_NAME, TG_OP
    USING ERRCODE = 'restrict_violation';
END $$;
