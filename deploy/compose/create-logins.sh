#!/bin/sh
# The logins of the service and of the operator, members of the roles that the migrations create. Can be run again.
set -eu

psql "$(cat /run/secrets/owner_database_url)" --set ON_ERROR_STOP=1 \
  --set service_password="$(cat /run/secrets/service_password)" \
  --set operator_password="$(cat /run/secrets/operator_password)" <<'SQL'
SELECT format('CREATE ROLE %I LOGIN PASSWORD %L IN ROLE %I', login, password, role)
FROM (VALUES ('card_issuing_service', :'service_password', 'card_issuing_app'),
             ('card_issuing_staff', :'operator_password', 'card_issuing_operator')) AS wanted (login, password, role)
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = login) \gexec
SQL
