#!/bin/sh
# The logins of the API, the worker and the operator, members of the roles that the migrations create. Can be run again.
set -eu

psql "$(cat /run/secrets/owner_database_url)" --set ON_ERROR_STOP=1 \
  --set api_password="$(cat /run/secrets/api_password)" \
  --set worker_password="$(cat /run/secrets/worker_password)" \
  --set operator_password="$(cat /run/secrets/operator_password)" <<'SQL'
SELECT format('CREATE ROLE %I LOGIN PASSWORD %L IN ROLE %I', login, password, role)
FROM (VALUES ('card_issuing_api_login', :'api_password', 'card_issuing_api'),
             ('card_issuing_worker_login', :'worker_password', 'card_issuing_worker'),
             ('card_issuing_staff', :'operator_password', 'card_issuing_operator')) AS wanted (login, password, role)
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = login) \gexec
SQL
