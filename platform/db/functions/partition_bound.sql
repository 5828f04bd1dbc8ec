-- A partition's lower bound (side 'FROM') or upper bound ('TO'), as it was written; NULL for the default
-- partition and for MINVALUE.
CREATE OR REPLACE FUNCTION partition_bound(side text, partition oid) RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
RETURN (SELECT substring(pg_get_expr(relpartbound, oid) FROM side || ' \(''([^'']*)''\)') FROM pg_class WHERE oid = partition)
  COLLATE "C";
