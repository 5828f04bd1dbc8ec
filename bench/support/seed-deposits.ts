import { createHash } from 'node:crypto';
import pg from 'pg';
import { lowestId } from '../../db/new-id.ts';
import { addressOf } from '../../dev/tron/address.ts';
import { FAKE_USDT_CONTRACT } from '../../dev/tron/drafts.ts';
import { ownerUrlOf } from '../../test/support/postgres.ts';

export const DEPOSIT_CENTS = 2_500;

export interface SeededDeposit {
  id: string;
  address: string;
}

/** Numbers of deposits: the first, and the one after the last. */
export interface Range {
  from: number;
  to: number;
}

/**
 * Gives partners in turn open deposits with these numbers, as the owner of the database: for 8 hours, of
 * an address each. Their workflows are taken to know of them.
 */
export async function seedDeposits(
  databaseUrl: string,
  partnerIds: readonly string[],
  { from, to }: Range,
): Promise<void> {
  const client = new pg.Client(ownerUrlOf(databaseUrl));
  await client.connect();
  try {
    await client.query(
      `INSERT INTO deposit (id, partner_id, mode, network, contract_address, address_index, address, address_hash,
         amount_cents, told_version, created_at, expires_at)
       SELECT $1 || lpad(n::text, 16, '0'), ($2::text[])[1 + n % array_length($2, 1)], 'live', 'private', $3,
         nextval('deposit_address_index'), 'T' || n, substring(sha256(n::text::bytea) FOR 20), $4, 1, now(),
         now() + interval '8 hours'
       FROM generate_series($5::int, $6::int) n`,
      [ID_PREFIX, partnerIds, FAKE_USDT_CONTRACT, DEPOSIT_CENTS, from, to - 1],
    );
    await client.query('VACUUM ANALYZE deposit');
  } finally {
    await client.end();
  }
}

export function seededDeposit(number: number): SeededDeposit {
  const hash = createHash('sha256').update(String(number)).digest('hex').slice(0, 40);
  return { id: `${ID_PREFIX}${String(number).padStart(16, '0')}`, address: addressOf(hash) };
}

const ID_PREFIX = lowestId('dep', new Date()).slice(0, 14);
