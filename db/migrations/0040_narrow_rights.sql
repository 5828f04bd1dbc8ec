-- Up Migration

-- What only the API or only the worker does, the other can't. A process of the release before works as card_issuing_app, which
-- loses these rights, so they are only taken if no login is left that works as it. If there is one, it is done by hand once the
-- upgrade is over (docs/operating.md, "Logins"). Can be called again.
CREATE FUNCTION narrow_service_rights() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  narrowed record;
BEGIN
  FOR narrowed IN
    SELECT * FROM (VALUES
      ('card_issuing_api', 'INSERT', 'card_reveal'::regclass),
      ('card_issuing_api', 'INSERT', 'faucet_credit'),
      ('card_issuing_api', 'INSERT', 'deposit'),
      ('card_issuing_api', 'INSERT', 'api_key_usage'),
      ('card_issuing_api', 'UPDATE', 'api_key_usage'),
      ('card_issuing_worker', 'INSERT', 'deposit_payment'),
      ('card_issuing_worker', 'INSERT', 'deposit_resolution'),
      ('card_issuing_worker', 'INSERT', 'chain_scan'),
      ('card_issuing_worker', 'INSERT', 'delivery_attempt'),
      ('card_issuing_worker', 'UPDATE', 'deposit'),
      ('card_issuing_worker', 'UPDATE', 'deposit_payment'),
      ('card_issuing_worker', 'UPDATE', 'chain_scan')) n (role, privilege, relation)
  LOOP
    IF has_table_privilege('card_issuing_app', narrowed.relation, narrowed.privilege) THEN
      EXECUTE format('GRANT %s ON %s TO %I', narrowed.privilege, narrowed.relation, narrowed.role);
    ELSIF has_any_column_privilege('card_issuing_app', narrowed.relation, narrowed.privilege) THEN
      EXECUTE (SELECT format('GRANT %s (%s) ON %s TO %I',
          narrowed.privilege, string_agg(quote_ident(a.attname), ', '), narrowed.relation, narrowed.role)
        FROM pg_attribute a
        WHERE a.attrelid = narrowed.relation AND a.attnum > 0 AND NOT a.attisdropped
          AND has_column_privilege('card_issuing_app', a.attrelid, a.attnum, narrowed.privilege));
    END IF;
    EXECUTE format('REVOKE %s ON %s FROM card_issuing_app', narrowed.privilege, narrowed.relation);
  END LOOP;
  GRANT USAGE ON SEQUENCE deposit_address_index TO card_issuing_api;
  REVOKE USAGE ON SEQUENCE deposit_address_index FROM card_issuing_app;
  GRANT EXECUTE ON FUNCTION make_partition, prune_deliveries, drop_old_events TO card_issuing_worker;
  REVOKE EXECUTE ON FUNCTION make_partition, prune_deliveries, drop_old_events FROM card_issuing_app;
END $$;
REVOKE ALL ON FUNCTION narrow_service_rights () FROM PUBLIC;

DO $$
BEGIN
  PERFORM FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.member
    WHERE m.roleid = 'card_issuing_app'::regrole AND r.rolcanlogin AND r.rolname <> current_user;
  IF NOT FOUND THEN
    PERFORM narrow_service_rights();
  END IF;
END $$;
