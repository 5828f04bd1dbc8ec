#!/bin/sh
# The postgres image runs this once, on an empty data folder. It creates the logins that own a database, and the service's
# database. Temporal's own tool creates Temporal's two.
set -eu

psql --username postgres --set ON_ERROR_STOP=1 \
  --set owner_password="$(cat /run/secrets/owner_password)" \
  --set temporal_password="$(cat /run/secrets/temporal_password)" <<'SQL'
CREATE ROLE card_issuing_owner LOGIN CREATEROLE PASSWORD :'owner_password';
CREATE DATABASE card_issuing OWNER card_issuing_owner;
CREATE ROLE temporal LOGIN CREATEDB PASSWORD :'temporal_password';
SQL
