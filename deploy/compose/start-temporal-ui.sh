#!/bin/sh
# The UI has no login here, so the address of its codec endpoint contains a token, which is read from a secret file.
set -eu

TEMPORAL_CODEC_ENDPOINT="http://127.0.0.1:3002/$(cat /run/secrets/codec_tokens)"
export TEMPORAL_CODEC_ENDPOINT
exec ./start-ui-server.sh
