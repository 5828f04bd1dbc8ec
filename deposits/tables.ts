import { defineEntity, p } from '@mikro-orm/core';
import type {
  ChainName,
  DepositNetwork,
  DepositStatus,
  NodeSays,
  NodeState,
  PaymentStatus,
  ReviewReason,
  TestPayment,
} from '../domain/deposit.ts';
import type { Mode } from '../domain/mode.ts';

/** A deposit: the address that was given out, and what became of it. */
export const DepositEntity = defineEntity({
  name: 'Deposit',
  tableName: 'deposit',
  properties: {
    id: p.text().collation('C').primary(),
    partnerId: p.text().collation('C'),
    mode: p.text().$type<Mode>().collation('C'),
    network: p.text().$type<DepositNetwork>().collation('C'),
    contractAddress: p.text(),
    addressIndex: p.integer().nullable(),
    address: p.text(),
    addressHash: p.blob().nullable(),
    amountCents: p.bigint('string'),
    status: p.text().$type<DepositStatus>().collation('C').default('awaiting_payment'),
    creditedCents: p.bigint('string').defaultRaw('0'),
    seenBlockNumber: p.bigint('string').nullable(),
    createdAt: p.datetime(),
    expiresAt: p.datetime(),
    confirmedAt: p.datetime().nullable(),
    reviewSince: p.datetime().nullable(),
    version: p.integer().default(1),
    changedAt: p.datetime().defaultRaw('now()'),
    /** Null if it has no workflow. */
    toldVersion: p.integer().nullable().default(0),
    leaseExpiresAt: p.datetime().defaultRaw("'-infinity'"),
    testPayment: p.text().$type<TestPayment>().nullable(),
    /** When something is next due for a test deposit, in the account's time. */
    dueAt: p.datetime().nullable(),
  },
});

/** A transfer of USDT to the address of a deposit, in a solid block. */
export const DepositPaymentEntity = defineEntity({
  name: 'DepositPayment',
  tableName: 'deposit_payment',
  properties: {
    network: p.text().$type<DepositNetwork>().collation('C').primary(),
    txHash: p.text().collation('C').primary(),
    logIndex: p.integer().primary(),
    depositId: p.text().collation('C'),
    partnerId: p.text().collation('C'),
    mode: p.text().$type<Mode>().collation('C'),
    valueMicroUsdt: p.decimal('string').columnType('numeric(78,0)'),
    blockNumber: p.bigint('string'),
    transactionIndex: p.integer(),
    blockTime: p.datetime(),
    status: p.text().$type<PaymentStatus>().collation('C').default('found'),
    reviewReason: p.text().$type<ReviewReason>().nullable(),
    foundAt: p.datetime().defaultRaw('now()'),
  },
});

/** A transfer to the address of a deposit that too few nodes have shown so far. */
export const UnconfirmedPaymentEntity = defineEntity({
  name: 'UnconfirmedPayment',
  tableName: 'unconfirmed_payment',
  properties: {
    network: p.text().$type<ChainName>().collation('C').primary(),
    txHash: p.text().collation('C').primary(),
    logIndex: p.integer().primary(),
    depositId: p.text().collation('C').primary(),
    valueMicroUsdt: p.decimal('string').columnType('numeric(78,0)').primary(),
    partnerId: p.text().collation('C'),
    mode: p.text().$type<Mode>().collation('C'),
    blockNumber: p.bigint('string'),
    blockHash: p.text().collation('C'),
    transactionIndex: p.integer(),
    blockTime: p.datetime(),
    says: p.json().$type<NodeSays[]>(),
    seenAt: p.datetime().defaultRaw('now()'),
    askedAt: p.datetime().defaultRaw('now()'),
  },
});

/** What an operator decided about a deposit. */
export const DepositResolutionEntity = defineEntity({
  name: 'DepositResolution',
  tableName: 'deposit_resolution',
  properties: {
    depositId: p.text().collation('C').primary(),
    /** The deposit's version when it was decided. */
    version: p.integer().primary(),
    outcome: p.text().$type<'credited' | 'returned'>(),
    creditedCents: p.bigint('string'),
    reason: p.text(),
    actor: p.text(),
    resolvedAt: p.datetime().defaultRaw('now()'),
  },
});

/** How far a chain has been read. */
export const ChainScanEntity = defineEntity({
  name: 'ChainScan',
  tableName: 'chain_scan',
  properties: {
    network: p.text().$type<ChainName>().collation('C').primary(),
    blockNumber: p.bigint('string'),
    /** The highest block ever taken. */
    furthestBlockNumber: p.bigint('string').defaultRaw('0'),
    blockHash: p.text().collation('C').nullable(),
    blockTime: p.datetime().nullable(),
    solidBlockNumber: p.bigint('string').nullable(),
    node: p.text().nullable(),
    nodes: p.json().$type<NodeState[]>().defaultRaw("'[]'"),
    checkedAt: p.datetime().nullable(),
  },
});
