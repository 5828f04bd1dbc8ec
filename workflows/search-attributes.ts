import { defineSearchAttributeKey, SearchAttributeType } from '@temporalio/common';

/** What operators find workflows by (design of the workflows, "Operators"). */
export const partnerIdAttribute = defineSearchAttributeKey('PartnerId', SearchAttributeType.KEYWORD);
export const modeAttribute = defineSearchAttributeKey('Mode', SearchAttributeType.KEYWORD);
export const cardIdAttribute = defineSearchAttributeKey('CardId', SearchAttributeType.KEYWORD);
export const depositIdAttribute = defineSearchAttributeKey('DepositId', SearchAttributeType.KEYWORD);
export const needsAttentionAttribute = defineSearchAttributeKey('NeedsAttention', SearchAttributeType.BOOL);
export const eventTypeAttribute = defineSearchAttributeKey('EventType', SearchAttributeType.KEYWORD);
export const deliveryStatusAttribute = defineSearchAttributeKey(
  'DeliveryStatus',
  SearchAttributeType.KEYWORD,
);
