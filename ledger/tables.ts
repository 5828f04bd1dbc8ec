import { defineEntity, p } from '@mikro-orm/core';
import type { Mode } from '../domain/mode.ts';

// Only for reading: `ledger.apply_operations` alone writes these tables
// (docs/decisions/ledger-one-function.md).

export type AccountKind =
  | 'prepaid'
  | 'card'
  | 'network'
  | 'fee_revenue'
  | 'faucet'
  | 'crypto_clearing'
  | 'adjustment';
const accountKind = () => p.text().$type<AccountKind>().columnType('ledger.account_kind');

export const LedgerAccountEntity = defineEntity({
  name: 'LedgerAccount',
  schema: 'ledger',
  tableName: 'account',
  properties: {
    /** `<kind>/<mode>/<partnerId>`, or `card/<cardId>`. */
    id: p.text().collation('C').primary(),
    partnerId: p.text().collation('C'),
    mode: p.text().$type<Mode>(),
    kind: accountKind(),
    cardId: p.text().collation('C').nullable(),
    /** Whether it has a balance: prepaid and card accounts do. */
    tracked: p
      .boolean()
      .generated("(kind = any (array['prepaid'::ledger.account_kind, 'card'::ledger.account_kind])) stored"),
    /** Cents: credits less debits, and how much of that unresolved pending transfers reserve. */
    posted: p.bigint('string').defaultRaw('0'),
    held: p.bigint('string').defaultRaw('0'),
    /** How many entries it has. */
    version: p.bigint('string').defaultRaw('0'),
    /** `posted - held` may not go below this, except with codes that may overdraw. */
    floor: p.bigint('string').defaultRaw('0'),
    /** The threshold of its balance alert; null: off. */
    alertCents: p.bigint('string').nullable(),
    /** Whether the available balance was below it after the last change. */
    alertIsLow: p.boolean().default(false),
  },
});

/** An allowed flow. */
export const LedgerCodeEntity = defineEntity({
  name: 'LedgerCode',
  schema: 'ledger',
  tableName: 'code',
  properties: {
    code: p.text().collation('C').primary(),
    debitKind: accountKind(),
    creditKind: accountKind(),
    mayOverdraw: p.boolean(),
    mayHold: p.boolean(),
    mode: p.text().$type<Mode>().comment('The one mode it may be used in; NULL: both.').nullable(),
    postedBy: p.array().default([]).comment('The roles whose logins may post it; none, unless it is said.'),
  },
});

export const LedgerTransferEntity = defineEntity({
  name: 'LedgerTransfer',
  schema: 'ledger',
  tableName: 'transfer',
  properties: {
    id: p.uuid().primary(),
    /** SHA-256 of all the transfers of the call that made it. */
    fingerprint: p.blob(),
    seq: p.bigint('string').generated('identity'),
    operationId: p.text().collation('C'),
    partnerId: p.text().collation('C'),
    mode: p.text().$type<Mode>(),
    code: p.text().collation('C'),
    phase: p.text().$type<'single' | 'pending' | 'post' | 'void'>().columnType('ledger.phase'),
    /** The pending transfer that a post or a void resolves. */
    pendingId: p.uuid().nullable(),
    debitId: p.text().collation('C'),
    creditId: p.text().collation('C'),
    amount: p.bigint('string'),
    /** The prepaid balance right after it, if it touches one. */
    prepaidPosted: p.bigint('string').nullable(),
    prepaidHeld: p.bigint('string').nullable(),
    createdAt: p.datetime().defaultRaw('clock_timestamp()'),
    /** The day of its transaction, in UTC: its entries have the same day. */
    bookedOn: p.date().defaultRaw("((now() at time zone 'utc'::text))::date"),
  },
});

export const LedgerEntryEntity = defineEntity({
  name: 'LedgerEntry',
  schema: 'ledger',
  tableName: 'entry',
  properties: {
    transferId: p.uuid().primary(),
    side: p.text().$type<'debit' | 'credit'>().columnType('ledger.side').primary(),
    accountId: p.text().collation('C'),
    amount: p.bigint('string'),
    /** Only for tracked accounts: the balance it leaves, and its number in the account's chain. */
    balanceAfter: p.bigint('string').nullable(),
    accountVersion: p.bigint('string').nullable(),
    bookedOn: p.date().defaultRaw("((now() at time zone 'utc'::text))::date").primary(),
  },
});
