-- The ten characters of an id that say its time (platform/crypto/new-id.ts).
CREATE OR REPLACE FUNCTION id_time(at timestamptz) RETURNS text LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
RETURN (SELECT string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz',
    ((floor(extract(epoch FROM at) * 1000)::bigint >> (5 * i)) & 31)::integer + 1, 1), '' ORDER BY i DESC)
  FROM generate_series(0, 9) i);

GRANT EXECUTE ON FUNCTION id_time TO card_issuing_app, card_issuing_operator;
