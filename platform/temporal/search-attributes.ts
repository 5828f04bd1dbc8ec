import { defineSearchAttributeKey, SearchAttributeType } from '@temporalio/common';

/** The search attributes that operators find workflows by (docs/temporal-ui.md, "Saved queries"). */
export const partnerIdAttribute = defineSearchAttributeKey('PartnerId', SearchAttributeType.KEYWORD);
export const modeAttribute = defineSearchAttributeKey('Mode', SearchAttributeType.KEYWORD);
export const cardIdAttribute = defineSearchAttributeKey('CardId', SearchAttributeType.KEYWORD);
export const depositIdAttribute = defineSearchAttributeKey('DepositId', SearchAttributeType.KEYWORD);
export const eventTypeAttribute = defineSearchAttributeKey('EventType', SearchAttributeType.KEYWORD);
export const deliveryStatusAttribute = defineSearchAttributeKey(
  'DeliveryStatus',
  SearchAttributeType.KEYWORD,
);
export const needsAttentionAttribute = defineSearchAttributeKey('NeedsAttention', SearchAttributeType.BOOL);
/** `failed` on workflows whose operation failed. Successful ones don't set it, which saves each an event. */
export const outcomeAttribute = defineSearchAttributeKey('Outcome', SearchAttributeType.KEYWORD);

/** All of them, for code that registers or lists search attributes. */
export const SEARCH_ATTRIBUTES = [
  partnerIdAttribute,
  modeAttribute,
  cardIdAttribute,
  depositIdAttribute,
  eventTypeAttribute,
  deliveryStatusAttribute,
  needsAttentionAttribute,
  outcomeAttribute,
] as const;
