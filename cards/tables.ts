import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import type { AuthorizationRequest, AuthorizationStatus, DeclineReason } from '../domain/authorization.ts';
import type { CardFailureCode } from '../domain/card.ts';
import type { CardStatus } from '../domain/card-status.ts';
import type { NotRecorded, RecordedDecision } from '../domain/decision.ts';
import type { Fee } from '../domain/fees.ts';
import type { Mode } from '../domain/mode.ts';
import type { SpendingControls } from '../domain/spending-controls.ts';
import type { ChargedTo, TransactionFee, TransactionType } from '../domain/transaction.ts';
import type { Metadata } from './metadata-rules.ts';

/** What cards are issued from. */
export const ProductEntity = defineEntity({
  name: 'Product',
  tableName: 'product',
  properties: {
    code: p.text().primary(),
    bin: p.text(),
    network: p.text(),
    /** The card network's own reference of it. */
    issuerProduct: p.text().nullable(),
    isCurrent: p.boolean().default(false),
    retiredAt: p.datetime().nullable(),
    createdAt: p.datetime().defaultRaw('now()'),
  },
});
export type Product = InferEntity<typeof ProductEntity>;

/** A product that an account may issue besides the current one. */
export const PartnerProductEntity = defineEntity({
  name: 'PartnerProduct',
  tableName: 'partner_product',
  properties: {
    partnerId: p.text().primary(),
    productCode: p.text().primary(),
  },
});

export const CardEntity = defineEntity({
  name: 'Card',
  tableName: 'card',
  properties: {
    id: p.text().collation('C').primary(),
    partnerId: p.text(),
    mode: p.text().$type<Mode>(),
    status: p.text().$type<CardStatus>(),
    externalRef: p.text(),
    cardName: p.text().nullable(),
    cardholderFirstName: p.text().nullable(),
    cardholderLastName: p.text().nullable(),
    email: p.text().nullable(),
    metadata: p.json().$type<Metadata>().defaultRaw("'{}'"),
    productCode: p.text(),
    network: p.text(),
    networkCardId: p.text().nullable(),
    last4: p.text().fieldName('last4').nullable(),
    expMonth: p.smallint().nullable(),
    expYear: p.smallint().nullable(),
    failureCode: p.text().$type<CardFailureCode>().nullable(),
    fundingCents: p.bigint('string'),
    fees: p.json().$type<Fee[]>(),
    /** Since when its issuance has been waiting for an operator. */
    overdueSince: p.datetime().nullable(),
    createdAt: p.datetime(),
    /** The claim of its issuance, while that is pending. */
    claimId: p.text().collation('C').nullable(),
    /** The claim whose freeze, unfreeze or block the network is being asked for. */
    statusChangeClaimId: p.text().collation('C').nullable(),
    /** The UTC day whose usage it counts in. */
    countedOn: p
      .type('date')
      .$type<string>()
      .defaultRaw("((now() at time zone 'UTC'::text))::date")
      .nullable(),
    /** What the network was asked with, besides the row's own fields; null in test mode. */
    asked: p.json().$type<{ bin: string; issuerProduct: string | null; named: boolean }>().nullable(),
    /** What an operator decided about its issuance. */
    decision: p.json().$type<RecordedDecision>().nullable(),
    /** Why the network's decision, or its id of the card, could not be recorded. */
    notRecorded: p.json().$type<NotRecorded>().nullable(),
    /** When to ask the network again for what it has not told us about the card. */
    lookUpAfter: p.datetime().defaultRaw("'-infinity'"),
    /**
     * Whether it was changed before its issuance had a response. `card.updated` is written with that
     * response.
     */
    updateUnannounced: p.boolean().default(false),
    /** When an operator erased the cardholder's data. */
    cardholderErasedAt: p.datetime().nullable(),
    spendingControls: p.json().$type<SpendingControls>().nullable(),
  },
});

/** A card transaction, as the network settled it. */
export const CardTransactionEntity = defineEntity({
  name: 'CardTransaction',
  tableName: 'card_transaction',
  properties: {
    id: p.text().collation('C').primary(),
    partnerId: p.text(),
    mode: p.text().$type<Mode>(),
    cardId: p.text().collation('C'),
    networkTransactionId: p.text(),
    /** The network's id of what it is part of; null if it was not told. */
    networkPaymentId: p.text().collation('C').nullable(),
    /** The purchase that a refund gives money back for; null if it is not known. */
    refundedTransactionId: p.text().collation('C').nullable(),
    type: p.text().$type<TransactionType>(),
    amountCents: p.bigint('string'),
    fees: p.json().$type<TransactionFee[]>(),
    merchantName: p.text().nullable(),
    merchantCategoryCode: p.text().nullable(),
    merchantCity: p.text().nullable(),
    merchantCountry: p.text().nullable(),
    declineReason: p.text().$type<DeclineReason>().nullable(),
    chargedTo: p.text().$type<ChargedTo>(),
    cardBalanceAfterCents: p.bigint('string'),
    /** The authorization that it clears, or that was declined with it. */
    authorizationId: p.text().collation('C').nullable(),
    /** It clears the authorization of its payment, which may not be known yet. */
    ofAuthorization: p.boolean().defaultRaw('false'),
    /** How much of a clearing its authorization's hold paid. */
    fromHoldCents: p.bigint('string').defaultRaw('0'),
    /** What the prepaid balance paid, if both did. */
    partnerBalanceCents: p.bigint('string').nullable(),
    createdAt: p.datetime(),
  },
});

/** Money that a merchant has asked a card for and not yet taken. */
export const CardAuthorizationEntity = defineEntity({
  name: 'CardAuthorization',
  tableName: 'card_authorization',
  properties: {
    id: p.text().collation('C').primary(),
    partnerId: p.text(),
    mode: p.text().$type<Mode>(),
    cardId: p.text().collation('C'),
    networkAuthorizationId: p.text().collation('C').nullable(),
    status: p.text().$type<AuthorizationStatus>(),
    amountCents: p.bigint('string'),
    heldCents: p.bigint('string'),
    settledCents: p.bigint('string'),
    /**
     * What the network holds, which is more if the card lacked it; null if it is what is authorized and not
     * settled.
     */
    targetCents: p.bigint('string').nullable(),
    declineReason: p.text().$type<DeclineReason>().nullable(),
    merchantName: p.text().nullable(),
    merchantCategoryCode: p.text().nullable(),
    merchantCity: p.text().nullable(),
    merchantCountry: p.text().nullable(),
    requests: p.json().$type<AuthorizationRequest[]>(),
    /** How many holds it has had; the ledger's steps are named after it. */
    holds: p.integer(),
    expiresAt: p.datetime().nullable(),
    createdAt: p.datetime(),
  },
});

/** What a card has spent in the latest interval of a limit. */
export const SpendingCounterEntity = defineEntity({
  name: 'SpendingCounter',
  tableName: 'spending_counter',
  properties: {
    cardId: p.text().collation('C').primary(),
    limitKey: p.text().collation('C').primary(),
    partnerId: p.text(),
    mode: p.text().$type<Mode>(),
    startsAt: p.datetime(),
    endsAt: p.datetime(),
    /** Null: merchants of all categories. */
    categories: p.array().nullable(),
    /** What counts, less refunds. */
    netCents: p.bigint('string'),
    hasRefunds: p.boolean().default(false),
    lastItem: p.text().collation('C').default(''),
  },
});

/** A partner's request for the secure details of a card. */
export const CardRevealEntity = defineEntity({
  name: 'CardReveal',
  tableName: 'card_reveal',
  properties: {
    id: p.text().collation('C').primary(),
    partnerId: p.text(),
    mode: p.text().$type<Mode>(),
    cardId: p.text().collation('C'),
    apiKeyId: p.text(),
    requestId: p.text(),
    clientAddress: p.text().nullable(),
    createdAt: p.datetime().defaultRaw('clock_timestamp()'),
  },
});

/** A link that shows a card's secure details once. */
export const RevealLinkEntity = defineEntity({
  name: 'RevealLink',
  tableName: 'reveal_link',
  properties: {
    id: p.text().collation('C').primary(),
    partnerId: p.text(),
    mode: p.text().$type<Mode>(),
    cardId: p.text().collation('C'),
    /** The key that made it. */
    apiKeyId: p.text(),
    /** The keyed hash of its token. */
    tokenHash: p.blob().lazy(),
    /** Whose pages may embed it. */
    frameOrigins: p.array(),
    theme: p.text().$type<'light' | 'dark'>().nullable(),
    expiresAt: p.datetime(),
    openedAt: p.datetime().nullable(),
  },
});

/** An attempt to reveal a card that was refused. It does not count towards the limit. */
export const RefusedRevealEntity = defineEntity({
  name: 'RefusedReveal',
  tableName: 'refused_reveal',
  properties: {
    id: p.text().collation('C').primary(),
    partnerId: p.text(),
    mode: p.text().$type<Mode>(),
    /** As it was asked for, if it has the form of a card's id. */
    cardId: p.text().collation('C').nullable(),
    apiKeyId: p.text(),
    requestId: p.text(),
    clientAddress: p.text(),
    /** The error's code. */
    reason: p.text(),
    createdAt: p.datetime().defaultRaw('clock_timestamp()'),
  },
});

/** What the card network has to move so that a card's account there has what our ledger says. */
export const TrueUpEntity = defineEntity({
  name: 'TrueUp',
  tableName: 'true_up',
  properties: {
    id: p.text().collation('C').primary(),
    direction: p.text().$type<'from_card' | 'to_card'>().collation('C'),
    /** The ledger's transfer that it follows. */
    transferId: p.uuid(),
    operationId: p.text().collation('C'),
    partnerId: p.text(),
    mode: p.text().$type<Mode>(),
    cardId: p.text().collation('C'),
    amountCents: p.bigint('string'),
    /** What the network is asked with. */
    token: p.text().collation('C'),
    status: p.text().$type<TrueUpStatus>().collation('C').default('pending'),
    reason: p.text().nullable(),
    attempts: p.integer().default(0),
    retryAfter: p.datetime().defaultRaw("'-infinity'"),
    createdAt: p.datetime().defaultRaw('now()'),
    endedAt: p.datetime().nullable(),
  },
});

export type TrueUpStatus = 'pending' | 'succeeded' | 'refused' | 'dismissed';

/** How many cards of each status an account has. */
export const CardCountEntity = defineEntity({
  name: 'CardCount',
  tableName: 'card_count',
  properties: {
    partnerId: p.text().collation('C').primary(),
    mode: p.text().collation('C').$type<Mode>().primary(),
    fundingPending: p.bigint('string').defaultRaw('0'),
    active: p.bigint('string').defaultRaw('0'),
    frozen: p.bigint('string').defaultRaw('0'),
    blocked: p.bigint('string').defaultRaw('0'),
    failed: p.bigint('string').defaultRaw('0'),
  },
});
