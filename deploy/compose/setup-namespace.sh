#!/bin/sh
# The namespace, and the search attributes that workflows are found by. Can be run again.
set -eu

until temporal operator cluster health >/dev/null 2>&1; do sleep 1; done
temporal operator namespace describe --namespace "$TEMPORAL_NAMESPACE" >/dev/null 2>&1 ||
  temporal operator namespace create --namespace "$TEMPORAL_NAMESPACE" --retention 30d

present=$(temporal operator search-attribute list --namespace "$TEMPORAL_NAMESPACE")
for attribute in PartnerId:Keyword Mode:Keyword CardId:Keyword DepositId:Keyword EventType:Keyword \
  DeliveryStatus:Keyword NeedsAttention:Bool; do
  name=${attribute%%:*}
  if ! echo "$present" | grep -qw "$name"; then
    temporal operator search-attribute create --namespace "$TEMPORAL_NAMESPACE" --name "$name" --type "${attribute##*:}"
  fi
done
