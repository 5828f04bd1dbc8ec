-- Counts a card by its status (docs/decisions/overview.md). Its row is locked last, as the transaction commits,
-- and one transaction changes cards of one account, so this waits only for commits.
CREATE OR REPLACE FUNCTION count_card() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  was text := CASE WHEN TG_OP <> 'INSERT' THEN OLD.status END;
  became text := CASE WHEN TG_OP <> 'DELETE' THEN NEW.status END;
  change integer[] := ARRAY(
    SELECT coalesce((s = became)::integer, 0) - coalesce((s = was)::integer, 0)
    FROM unnest('{funding_pending,active,frozen,blocked,failed}'::text[]) s);
BEGIN
  INSERT INTO public.card_count AS c (partner_id, mode, funding_pending, active, frozen, blocked, failed)
  VALUES (coalesce(NEW.partner_id, OLD.partner_id), coalesce(NEW.mode, OLD.mode),
    change[1], change[2], change[3], change[4], change[5])
  ON CONFLICT (partner_id, mode) DO UPDATE SET funding_pending = c.funding_pending + excluded.funding_pending,
    active = c.active + excluded.active, frozen = c.frozen + excluded.frozen,
    blocked = c.blocked + excluded.blocked, failed = c.failed + excluded.failed;
  RETURN NULL;
END $$;

DROP TRIGGER IF EXISTS card_counted ON card;
CREATE CONSTRAINT TRIGGER card_counted AFTER INSERT OR DELETE ON card DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION count_card();
DROP TRIGGER IF EXISTS card_recounted ON card;
CREATE CONSTRAINT TRIGGER card_recounted AFTER UPDATE OF status ON card DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW WHEN (OLD.status <> NEW.status) EXECUTE FUNCTION count_card();
