import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import type { FeePlan } from '../domain/fees.ts';
import type { Mode } from '../domain/mode.ts';
import type { SpendingControls } from '../domain/spending-controls.ts';
import type { AccountLimits } from './limits-rules.ts';
import { DEFAULT_SCOPES, type Scope } from './scope-rules.ts';

export const PartnerEntity = defineEntity({
  name: 'Partner',
  tableName: 'partner',
  properties: {
    id: p.text().primary(),
    name: p.text(),
    secureDetailsEnabled: p.boolean().default(false),
    /** Null: the platform's plan. */
    feePlan: p.json().$type<FeePlan>().nullable(),
    /** Null: the platform's limits. */
    limits: p.json().$type<AccountLimits>().nullable(),
    /** For each of its cards. */
    spendingControls: p.json().$type<SpendingControls>().nullable(),
    /** Since when its keys are refused, and why. Null if they are not. */
    suspendedAt: p.datetime().nullable(),
    suspensionReason: p.text().nullable(),
    createdAt: p.datetime().defaultRaw('now()'),
  },
});
export type Partner = InferEntity<typeof PartnerEntity>;

/** What an account has used of its limits in one mode. Both rows are created with the account. */
export const AccountUsageEntity = defineEntity({
  name: 'AccountUsage',
  tableName: 'account_usage',
  properties: {
    partnerId: p.text().primary(),
    mode: p.text().$type<Mode>().primary(),
    openCards: p.integer().default(0),
    /** The UTC day whose loads loadedCents adds up. */
    loadedOn: p.type('date').$type<string>().defaultRaw("'-infinity'"),
    loadedCents: p.bigint('string').defaultRaw('0'),
  },
});

export const ApiKeyEntity = defineEntity({
  name: 'ApiKey',
  tableName: 'api_key',
  properties: {
    id: p.text().primary(),
    partnerId: p.text(),
    mode: p.text().$type<Mode>(),
    name: p.text().nullable(),
    /** The keyed hash of the key. The key itself is not stored. */
    hash: p.blob().lazy(),
    hint: p.text(),
    createdAt: p.datetime().defaultRaw('now()'),
    revokedAt: p.datetime().nullable(),
    /** Right within a minute. Null: never used, or not since this is recorded. */
    lastUsedAt: p.datetime().nullable(),
    /** What it may do. */
    scopes: p
      .array()
      .$type<Scope[]>()
      .defaultRaw(`'{${DEFAULT_SCOPES.join(',')}}'`),
    /** CIDR blocks. Null: it may be used from every address. */
    ipAllowlist: p.array().nullable(),
    expiresAt: p.datetime().nullable(),
    /** `operator`, or the id of the key that made it. */
    createdBy: p.text().default('operator'),
    /** Its first 12 characters. */
    prefix: p.text(),
    /** When `api_key.expiring` was written. */
    expiryAnnouncedAt: p.datetime().nullable(),
  },
});
export type ApiKey = InferEntity<typeof ApiKeyEntity>;

/** An API key that lives in a browser's cookie. */
export const WorkbenchSessionEntity = defineEntity({
  name: 'WorkbenchSession',
  tableName: 'workbench_session',
  properties: {
    id: p.text().collation('C').primary(),
    partnerId: p.text(),
    mode: p.text().$type<Mode>(),
    /** The key that made it. */
    apiKeyId: p.text(),
    scopes: p.array().$type<Scope[]>(),
    /** The keyed hash of the token in its link. */
    linkHash: p.blob().lazy(),
    linkExpiresAt: p.datetime(),
    /** The keyed hash of the token in its cookie. Null until the link was opened. */
    cookieHash: p.blob().lazy().nullable(),
    expiresAt: p.datetime(),
    endedAt: p.datetime().nullable(),
    createdAt: p.datetime().defaultRaw('now()'),
  },
});

/** What is derived from a key of ENCRYPTION_KEYS, kept for when the key has left the ring. */
export const RingKeyEntity = defineEntity({
  name: 'RingKey',
  tableName: 'ring_key',
  properties: {
    id: p.text().collation('C').primary(),
    /** Sealed. */
    root: p.blob(),
    createdAt: p.datetime().defaultRaw('now()'),
  },
});

/**
 * What keys and accounts have used of their limits, across all processes. A crash of PostgreSQL empties the
 * table.
 */
export const UsageBucketEntity = defineEntity({
  name: 'UsageBucket',
  tableName: 'usage_bucket',
  properties: {
    name: p.text().primary(),
    /** When the whole burst is available again. */
    fullAt: p.datetime(),
    /** When that was last counted. If it is in the future, the clock has been set back since. */
    countedAt: p.datetime(),
  },
});

/** An API process, with the accounts that have sent it requests lately. */
export const ApiProcessEntity = defineEntity({
  name: 'ApiProcess',
  tableName: 'api_process',
  properties: {
    id: p.text().primary(),
    activeAccounts: p.array(),
    seenAt: p.datetime(),
  },
});

/** A credit of pretend money to a test balance. */
export const FaucetCreditEntity = defineEntity({
  name: 'FaucetCredit',
  tableName: 'faucet_credit',
  properties: {
    id: p.text().primary(),
    partnerId: p.text(),
    mode: p.text().$type<'test'>(),
    amountCents: p.bigint('string'),
    createdAt: p.datetime().defaultRaw('now()'),
  },
});

/** A correction of a prepaid balance by an operator. */
export const BalanceAdjustmentEntity = defineEntity({
  name: 'BalanceAdjustment',
  tableName: 'balance_adjustment',
  properties: {
    id: p.text().primary(),
    partnerId: p.text(),
    mode: p.text().$type<Mode>(),
    /** Negative for a debit. */
    amountCents: p.bigint('string'),
    reason: p.text(),
    /** The operator's idempotency key. */
    key: p.text().nullable(),
    /** Whose it was; the database fills it in. */
    login: p.text().defaultRaw('session_user'),
    createdAt: p.datetime().defaultRaw('now()'),
  },
});

/**
 * An adjustment that waits for a second operator, or was decided. Its id is that of the adjustment it
 * becomes.
 */
export const AdjustmentRequestEntity = defineEntity({
  name: 'AdjustmentRequest',
  tableName: 'adjustment_request',
  properties: {
    id: p.text().collation('C').primary(),
    partnerId: p.text(),
    mode: p.text().$type<Mode>(),
    amountCents: p.bigint('string'),
    reason: p.text(),
    key: p.text().nullable(),
    status: p.text().$type<'pending' | 'approved' | 'rejected'>().default('pending'),
    requestedBy: p.text(),
    /** The database fills in both logins, and when it was decided. */
    requestedLogin: p.text().defaultRaw('session_user'),
    createdAt: p.datetime().defaultRaw('now()'),
    decidedBy: p.text().nullable(),
    decidedLogin: p.text().nullable(),
    decidedAt: p.datetime().nullable(),
    decisionReason: p.text().nullable(),
  },
});

/** One row: above this amount, the database books no adjustment without an approved request. */
export const AdjustmentLimitEntity = defineEntity({
  name: 'AdjustmentLimit',
  tableName: 'adjustment_limit',
  properties: {
    onlyOne: p.boolean().default(true).primary(),
    limitCents: p.bigint('string'),
  },
});

/** An entry of the audit log that is committed but not in the chain yet. */
export const AuditUnchainedEntity = defineEntity({
  name: 'AuditUnchained',
  tableName: 'audit_unchained',
  properties: {
    id: p.text().collation('C').primary(),
    queuedAt: p.datetime().defaultRaw('clock_timestamp()'),
  },
});

/** A link of the audit log's hash chain. */
export const AuditChainEntity = defineEntity({
  name: 'AuditChain',
  tableName: 'audit_chain',
  properties: {
    seq: p.bigint('string').primary().autoincrement(false),
    /** The entry's, whichever table it is in. */
    id: p.text().collation('C'),
    /** SHA-256 of the entry's content. */
    digest: p.blob(),
    /** Covers the digest and the hash before it. */
    hash: p.blob(),
    chainedAt: p.datetime(),
  },
});

/** An advance of an account's sandbox clock. */
export const TestClockAdvanceEntity = defineEntity({
  name: 'TestClockAdvance',
  tableName: 'test_clock_advance',
  properties: {
    partnerId: p.text().collation('C').primary(),
    /** In real time. */
    advancedAt: p.datetime().primary(),
    secondsBefore: p.bigint('string'),
    /** How far the clock is ahead of real time since then. */
    offsetSeconds: p.bigint('string'),
    /** What the clock showed right after it. */
    shows: p.datetime(),
  },
});
