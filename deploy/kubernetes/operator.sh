#!/bin/sh
# Runs a command of the operator's command line in a pod of its own, which operator.yaml describes:
#
#   OPERATOR=anna IMAGE=registry.example.com/card-issuing@sha256:… deploy/kubernetes/operator.sh attention list
#
# It has the login of the Secret card-issuing-operator. OPERATOR_SECRET names another one, such as that of your own login.
set -eu
: "${OPERATOR:?set OPERATOR to your name, for the audit log}"
: "${IMAGE:?set IMAGE to the version that runs: kubectl --namespace card-issuing get deployment worker --output jsonpath=\{..image\}}"
case $OPERATOR in
  *[!A-Za-z0-9@._-]*) echo "OPERATOR may have letters, digits, @, ., _ and - only" >&2; exit 2 ;;
esac

secret=${OPERATOR_SECRET:-card-issuing-operator}
case $secret in
  *[!a-z0-9.-]*) echo "OPERATOR_SECRET is no name of a Secret: it may have a-z, 0-9, . and - only" >&2; exit 2 ;;
esac

manifest=$(dirname "$0")/operator.yaml
pod=$(sed -e "s|image: card-issuing:1.0.0|image: $IMAGE|" -e "s|name: OPERATOR, value: NAME|name: OPERATOR, value: '$OPERATOR'|" \
  -e "s|secretName: card-issuing-operator|secretName: $secret|" \
  "$manifest" | kubectl create --filename - --output name)
trap 'kubectl --namespace card-issuing delete --wait=false "$pod" >&2' EXIT
trap 'exit 130' INT TERM
kubectl --namespace card-issuing wait --for=condition=Ready --timeout=2m "$pod" >&2

# A terminal only if there is one, so that the output can also go into a file or a pipe.
terminal=
if [ -t 0 ] && [ -t 1 ]; then terminal=--tty; fi
# shellcheck disable=SC2086
kubectl --namespace card-issuing exec --stdin $terminal "$pod" -- \
  node --import ./platform/process/check-node.mjs operator/main.ts "$@"
