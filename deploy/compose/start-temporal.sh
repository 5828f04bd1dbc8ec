#!/bin/sh
# The image takes its password only from the environment, so it is read from the secret file here.
set -eu

POSTGRES_PWD=$(cat /run/secrets/temporal_password)
export POSTGRES_PWD
exec /etc/temporal/entrypoint.sh
