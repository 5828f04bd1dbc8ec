-- Trigger of what the audit chain protects: an entry commits together with its place in the queue, so the chain misses
-- none, however late it commits.
CREATE OR REPLACE FUNCTION queue_for_chain() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO public.audit_unchained (id) VALUES (NEW.id) ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;
