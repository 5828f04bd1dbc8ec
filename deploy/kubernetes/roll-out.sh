#!/bin/sh
# Rolls out a version: migrations, then workers, then the API, each when the one before is done. A workflow that a new API process
# has started may need new code in the workers, and old API processes work with new workers.
#
#   IMAGE=registry.example.com/card-issuing@sha256:… deploy/kubernetes/roll-out.sh
set -eu
: "${IMAGE:?set IMAGE to the version to roll out, by its digest: registry.example.com/card-issuing@sha256:…}"
cd "$(dirname "$0")"

of_this_version() {
  sed "s|image: card-issuing:1.0.0|image: $IMAGE|" "$1"
}
in_namespace() {
  kubectl --namespace card-issuing "$@"
}

kubectl apply --filename config.yaml

job=$(of_this_version migrate.yaml | kubectl create --filename - --output name)
if ! in_namespace wait --for=condition=complete --timeout=15m "$job"; then
  in_namespace logs "$job" --tail=20
  echo "The migrations of $job did not complete, so nothing else was changed. Its log says what to do; then run this again." >&2
  exit 1
fi

of_this_version worker.yaml | kubectl apply --filename -
in_namespace rollout status deployment/worker --timeout=15m

of_this_version api.yaml | kubectl apply --filename -
for deployment in api reveal network; do
  in_namespace rollout status "deployment/$deployment" --timeout=15m
done

of_this_version codec.yaml | kubectl apply --filename -
in_namespace rollout status deployment/codec --timeout=15m
