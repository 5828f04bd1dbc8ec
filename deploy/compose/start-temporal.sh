#!/bin/sh
# The image reads its password from the environment alone; the secret is a file.
set -eu

POSTGRES_PWD=$(cat /run/secrets/temporal_password)
export POSTGRES_PWD
exec /etc/temporal/entrypoint.sh
