-- Trigger of what the audit chain protects: an entry commits together with its place in the queue, so the
-- chain misses none, however late it commits.
CREATE OR REPLACE FUNCTION queue_for_chain() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO public.audit_unchained (id) VALUES (NEW.id) ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER queue AFTER INSERT ON audit_entry FOR EACH ROW EXECUTE FUNCTION queue_for_chain();
CREATE OR REPLACE TRIGGER queue AFTER INSERT ON card_reveal FOR EACH ROW EXECUTE FUNCTION queue_for_chain();
CREATE OR REPLACE TRIGGER queue AFTER INSERT ON refused_reveal FOR EACH ROW EXECUTE FUNCTION queue_for_chain();
