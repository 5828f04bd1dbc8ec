-- Up Migration

-- The role every process works as. Roles belong to the whole cluster: another database of it may have made it already.
DO $$
BEGIN
  CREATE ROLE card_issuing_app NOLOGIN;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$;
GRANT card_issuing_app TO CURRENT_USER;
GRANT USAGE ON SCHEMA public TO card_issuing_app;
