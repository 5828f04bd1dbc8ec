import { randomBytes } from 'node:crypto';
import type { TronConfig } from '../../config/tron.ts';
import { newId, timeOf } from '../../crypto/new-id.ts';
import type { DepositStatus, PaymentStatus } from '../../domain/deposit.ts';
import { asOwner } from './api/as-owner.ts';
import type { TestStack } from './stack.ts';

/** Deposits on a private chain whose only node nobody runs. The xpub is that of design/deposits.md, test … junk. */
export const TEST_TRON: TronConfig = {
  network: 'private',
  nodes: [{ full: 'http://127.0.0.1:9', solidity: 'http://127.0.0.1:9' }],
  apiKey: null,
  usdtContract: 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf',
  xpub: 'xpub6BuRy7ZmkGfP2RWhoor1kWB1w9DvrtmJbFBvnC1bQ4SB5NbCHTyQYCJSXZtxDbFyHTmC7wkU2he3nYYdpZ3Vf6qUAkXSnL6RPif4BDtDEKr',
  scanIntervalMs: 1_000,
};

/** The first of its addresses. */
export const TEST_ADDRESSES = ['TWer2Ygk5TEheHp3TPuYeqxmB6SsGZmaL6', 'TPjjvMwjPoDC32V2dGDYTkLH4E5LAtBZ6C'];

export interface SeededDeposit {
  status?: DepositStatus;
  amountCents?: number;
  network?: string;
  /** In the chain's order. */
  payments?: {
    valueMicroUsdt: bigint;
    status: PaymentStatus;
    reason?: string;
    blockNumber: number;
    blockTime: Date;
  }[];
}

/** Writes a deposit as other parts of the service would have left it. @returns its id */
export async function seedDeposit(
  stack: TestStack,
  partnerId: string,
  {
    status = 'awaiting_payment',
    amountCents = 2_500,
    network = 'private',
    payments = [],
  }: SeededDeposit = {},
): Promise<string> {
  const id = newId('dep');
  const received = payments.reduce((sum, { valueMicroUsdt }) => sum + valueMicroUsdt, 0n);
  const isCredited = payments.some((payment) => payment.status === 'credited');
  await asOwner(
    stack,
    `INSERT INTO deposit (id, partner_id, mode, network, contract_address, address_index, address, address_hash, amount_cents,
       status, received_micro_usdt, credited_cents, seen_block_number, created_at, expires_at, confirmed_at, review_since)
     VALUES ($1, $2, 'live', $3, $4, nextval('deposit_address_index'), 'T-seeded', $5, $6, $7, $8, $9, $10, $11,
       $11::timestamptz + interval '8 hours', $12, $13)`,
    [
      ...[
        id,
        partnerId,
        network,
        TEST_TRON.usdtContract,
        randomBytes(20),
        amountCents,
        status,
        String(received),
      ],
      ...[isCredited ? amountCents : 0, status === 'confirming' ? 100 : null, timeOf(id)],
      ...[isCredited ? timeOf(id) : null, status === 'needs_review' ? timeOf(id) : null],
    ],
  );
  await asOwner(
    stack,
    `INSERT INTO deposit_payment (network, tx_hash, log_index, deposit_id, partner_id, mode, value_micro_usdt, block_number,
       transaction_index, block_time, status, review_reason)
     SELECT $1, encode(sha256(concat($2::text, n)::bytea), 'hex'), 0, $2, $3, 'live', value, block, 0, at, status, reason
     FROM unnest($4::numeric[], $5::int[], $6::timestamptz[], $7::text[], $8::text[]) WITH ORDINALITY
       AS payment (value, block, at, status, reason, n)`,
    [
      ...[network, id, partnerId, payments.map(({ valueMicroUsdt }) => String(valueMicroUsdt))],
      ...[payments.map(({ blockNumber }) => blockNumber), payments.map(({ blockTime }) => blockTime)],
      ...[payments.map((payment) => payment.status), payments.map(({ reason }) => reason ?? null)],
    ],
  );
  return id;
}
