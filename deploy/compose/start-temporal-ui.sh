#!/bin/sh
# The UI has no login here, so the address of its codec endpoint has a token in it; the secret is a file.
set -eu

TEMPORAL_CODEC_ENDPOINT="http://127.0.0.1:3002/$(cat /run/secrets/codec_tokens)"
export TEMPORAL_CODEC_ENDPOINT
exec ./start-ui-server.sh
