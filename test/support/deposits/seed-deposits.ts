import { createHash, randomBytes } from 'node:crypto';
import type pg from 'pg';
import type { FoundPayment } from '../../../deposits/take-blocks.ts';
import { FAKE_USDT_CONTRACT } from '../../../dev/tron/drafts.ts';
import type { DepositStatus, PaymentStatus } from '../../../domain/deposit.ts';
import type { TronConfig } from '../../../platform/config/tron.ts';
import { newId, readIdTime } from '../../../platform/crypto/new-id.ts';
import { asOwner } from '../postgres.ts';
import type { TestStack } from '../stack.ts';

/** Deposits on a private chain whose only node nobody runs. The xpub is that of the public mnemonic test … junk. */
export const TEST_TRON: TronConfig & { xpub: string } = {
  network: 'private',
  nodes: [{ full: 'http://127.0.0.1:9', solidity: 'http://127.0.0.1:9' }],
  apiKey: null,
  usdtContract: 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf',
  xpub: 'xpub6BuRy7ZmkGfP2RWhoor1kWB1w9DvrtmJbFBvnC1bQ4SB5NbCHTyQYCJSXZtxDbFyHTmC7wkU2he3nYYdpZ3Vf6qUAkXSnL6RPif4BDtDEKr',
  confirmingNodes: 1,
  scanIntervalMs: 1_000,
};

/** With the contract that fake nodes show. */
export const TEST_TRON_OF_FAKES = { ...TEST_TRON, usdtContract: FAKE_USDT_CONTRACT };

/** The first of its addresses. */
export const TEST_ADDRESSES = ['TWer2Ygk5TEheHp3TPuYeqxmB6SsGZmaL6', 'TPjjvMwjPoDC32V2dGDYTkLH4E5LAtBZ6C'];

interface SeededDeposit {
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

/** Writes a deposit as other parts of the service would leave it. @returns its id */
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
  const isCredited = payments.some((payment) => payment.status === 'credited');
  await asOwner(
    stack,
    `INSERT INTO deposit (id, partner_id, mode, network, contract_address, address_index, address, address_hash, amount_cents,
       status, credited_cents, seen_block_number, created_at, expires_at, confirmed_at, review_since)
     VALUES ($1, $2, 'live', $3, $4, nextval('deposit_address_index'), 'T-seeded', $5, $6, $7, $8, $9, $10,
       $10::timestamptz + interval '8 hours', $11, $12)`,
    [
      ...[id, partnerId, network, TEST_TRON.usdtContract, randomBytes(20), amountCents, status],
      isCredited ? amountCents : 0,
      status === 'confirming' ? 100 : null,
      readIdTime(id),
      isCredited ? readIdTime(id) : null,
      status === 'needs_review' ? readIdTime(id) : null,
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

interface StoredDeposit {
  id: string;
  status: string;
  received_micro_usdt: string;
  credited_cents: string;
  seen_block_number: string | null;
  is_confirmed: boolean;
  is_in_review: boolean;
  version: number;
  /** `<status> <review_reason>`, in the chain's order. */
  payments: string[];
}

interface SeededDeposits {
  partnerId: string;
  amountCents?: number;
  count?: number;
  /** SQL. */
  status?: string;
  createdAt?: string;
  expiresAt?: Date;
}

/** Gives out addresses without the API. @returns the deposits' ids, in order */
export async function seedDeposits(owner: pg.Client, seeded: SeededDeposits): Promise<string[]> {
  const {
    partnerId,
    amountCents = 2_500,
    count = 1,
    createdAt = 'now()',
    expiresAt = hoursFromNow(8),
  } = seeded;
  const rows = Array.from({ length: count }, () => {
    const id = newId('dep');
    return { id, hash: addressHashOf(id) };
  }).sort((a, b) => (a.id < b.id ? -1 : 1));
  await owner.query(
    `INSERT INTO deposit (id, partner_id, mode, network, contract_address, address_index, address, address_hash,
       amount_cents, created_at, expires_at)
     SELECT id, $2, 'live', 'private', 'TContract', nextval('deposit_address_index'), 'T' || id, decode(hash, 'hex'), $3, ${createdAt}, $4
     FROM json_to_recordset($1) AS r (id text, hash text)`,
    [JSON.stringify(rows), partnerId, amountCents, expiresAt],
  );
  return rows.map(({ id }) => id);
}

export const hoursFromNow = (hours: number): Date => new Date(Date.now() + hours * 3_600_000);

/** What {@link seedDeposits} makes of an id. */
export const addressHashOf = (depositId: string): string =>
  createHash('sha256').update(depositId).digest('hex').slice(0, 40);

/** A payment as the scan finds it: of the exact amount, in a transaction of its own, unless told otherwise. */
export function paymentFor(
  depositId: string,
  partnerId: string,
  more: Partial<Omit<FoundPayment, 'owner'>> = {},
): FoundPayment {
  return {
    txHash: randomBytes(32).toString('hex'),
    logIndex: 0,
    transactionIndex: 0,
    blockNumber: 101,
    blockTime: new Date(),
    valueMicroUsdt: 25_000_000n,
    ...more,
    owner: { depositId, partnerId, mode: 'live' },
  };
}

export async function readDeposits(owner: pg.Client): Promise<Map<string, StoredDeposit>> {
  const { rows } = await owner.query<StoredDeposit>(`
    SELECT d.id, d.status, d.credited_cents,
      (SELECT coalesce(sum(value_micro_usdt), 0)::text FROM deposit_payment WHERE deposit_id = d.id) AS received_micro_usdt, d.seen_block_number,
      d.confirmed_at IS NOT NULL AS is_confirmed, d.review_since IS NOT NULL AS is_in_review, d.version,
      array(SELECT concat_ws(' ', p.status, p.review_reason) FROM deposit_payment p WHERE p.deposit_id = d.id
        ORDER BY p.block_number, p.transaction_index, p.log_index) AS payments
    FROM deposit d ORDER BY d.id`);
  return new Map(rows.map((row) => [row.id, row]));
}
