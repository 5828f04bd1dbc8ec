import { createHash, randomBytes } from 'node:crypto';
import type pg from 'pg';
import type { FoundPayment } from '../../../commands/deposits/take-blocks.ts';
import { newId } from '../../../crypto/new-id.ts';

/** A deposit as its row and its payments say. */
export interface StoredDeposit {
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

export interface SeededDeposits {
  partnerId: string;
  amountCents?: number;
  count?: number;
  /** SQL. */
  status?: string;
  createdAt?: string;
  expiresAt?: Date;
}

/** Addresses given out, without the API. @returns the ids, in their order */
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
    deniedBy: null,
    ...more,
    owner: { depositId, partnerId, mode: 'live' },
  };
}

export async function readDeposits(owner: pg.Client): Promise<Map<string, StoredDeposit>> {
  const { rows } = await owner.query<StoredDeposit>(`
    SELECT d.id, d.status, d.received_micro_usdt, d.credited_cents, d.seen_block_number,
      d.confirmed_at IS NOT NULL AS is_confirmed, d.review_since IS NOT NULL AS is_in_review, d.version,
      array(SELECT concat_ws(' ', p.status, p.review_reason) FROM deposit_payment p WHERE p.deposit_id = d.id
        ORDER BY p.block_number, p.transaction_index, p.log_index) AS payments
    FROM deposit d ORDER BY d.id`);
  return new Map(rows.map((row) => [row.id, row]));
}
