#!/bin/sh
# Creates Temporal's two databases, or updates them to the server's version. Can be run again: each step skips what exists
# already.
set -eu

SQL_PLUGIN=postgres12 SQL_HOST=postgres SQL_PORT=5432 SQL_USER=temporal SQL_PASSWORD=$(cat /run/secrets/temporal_password)
export SQL_PLUGIN SQL_HOST SQL_PORT SQL_USER SQL_PASSWORD

for schema in temporal visibility; do
  database=temporal
  if [ "$schema" = visibility ]; then database=temporal_visibility; fi
  temporal-sql-tool --db "$database" create
  temporal-sql-tool --db "$database" setup-schema --version 0.0
  temporal-sql-tool --db "$database" update-schema --schema-dir "/etc/temporal/schema/postgresql/v12/$schema/versioned"
done
