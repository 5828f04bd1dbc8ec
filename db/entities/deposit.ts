import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import type { DepositStatus, PaymentStatus, ReviewReason } from '../../domain/deposit.ts';
import type { Mode } from '../../domain/mode.ts';

/** An address that was given out, and what became of it. */
export const DepositEntity = defineEntity({
  name: 'Deposit',
  tableName: 'deposit',
  properties: {
    id: p.string().primary(),
    partnerId: p.string(),
    mode: p.string().$type<Mode>(),
    network: p.string(),
    contractAddress: p.string(),
    addressIndex: p.integer(),
    address: p.string(),
    addressHash: p.blob(),
    amountCents: p.bigint('number'),
    status: p.string().$type<DepositStatus>(),
    receivedMicroUsdt: p.bigint('bigint').columnType('numeric(78,0)').default(0),
    creditedCents: p.bigint('number').default(0),
    seenBlockNumber: p.bigint('number').nullable(),
    createdAt: p.datetime(),
    expiresAt: p.datetime(),
    confirmedAt: p.datetime().nullable(),
    reviewSince: p.datetime().nullable(),
    version: p.integer().default(1),
    changedAt: p.datetime().onCreate(() => new Date()),
    toldVersion: p.integer().default(0),
    leaseExpiresAt: p.datetime(),
  },
});
export type Deposit = InferEntity<typeof DepositEntity>;

/** A transfer of USDT to the address of a deposit, in a solid block. */
export const DepositPaymentEntity = defineEntity({
  name: 'DepositPayment',
  tableName: 'deposit_payment',
  properties: {
    network: p.string().primary(),
    txHash: p.string().primary(),
    logIndex: p.integer().primary(),
    depositId: p.string(),
    partnerId: p.string(),
    mode: p.string().$type<Mode>(),
    valueMicroUsdt: p.bigint('bigint').columnType('numeric(78,0)'),
    blockNumber: p.bigint('number'),
    transactionIndex: p.integer(),
    blockTime: p.datetime(),
    deniedBy: p.string().nullable(),
    status: p.string().$type<PaymentStatus>(),
    reviewReason: p.string().$type<ReviewReason>().nullable(),
    foundAt: p.datetime().onCreate(() => new Date()),
  },
});
export type DepositPayment = InferEntity<typeof DepositPaymentEntity>;

/** How far a chain has been read. */
export const ChainScanEntity = defineEntity({
  name: 'ChainScan',
  tableName: 'chain_scan',
  properties: {
    network: p.string().primary(),
    blockNumber: p.bigint('number'),
    blockHash: p.string().nullable(),
    blockTime: p.datetime().nullable(),
    solidBlockNumber: p.bigint('number').nullable(),
    node: p.string().nullable(),
    nodes: p.json().$type<NodeState[]>(),
    checkedAt: p.datetime().nullable(),
  },
});
export type ChainScan = InferEntity<typeof ChainScanEntity>;

/** What the scan last saw of a node. */
export interface NodeState {
  /** Host and port; nothing of its path or key. */
  name: string;
  state: 'in_use' | 'standby' | 'behind' | 'failing' | 'contradicting';
  /** A short code or sentence; null where there is none. */
  problem: string | null;
  /** ISO 8601. */
  since: string;
}
