import { createHash } from 'node:crypto';
import { lowestId } from '../../crypto/new-id.ts';
import { addressOf } from '../../dev/tron/address.ts';
import { FAKE_USDT_CONTRACT } from '../../dev/tron/drafts.ts';
import { asOwner } from '../../test/support/postgres.ts';

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

/** Begins the scan behind this block. */
export async function beginScan(databaseUrl: string, blockNumber: number): Promise<void> {
  await asOwner(
    databaseUrl,
    `INSERT INTO chain_scan (network, block_number) VALUES ('private', ${blockNumber})`,
  );
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
  await asOwner(databaseUrl, [
    `INSERT INTO deposit (id, partner_id, mode, network, contract_address, address_index, address, address_hash,
       amount_cents, told_version, created_at, expires_at)
     SELECT '${ID_PREFIX}' || lpad(n::text, 16, '0'), partner[1 + n % array_length(partner, 1)], 'live', 'private',
       '${FAKE_USDT_CONTRACT}', nextval('deposit_address_index'), 'T' || n, substring(sha256(n::text::bytea) FOR 20),
       ${DEPOSIT_CENTS}, 1, now(), now() + interval '8 hours'
     FROM generate_series(${from}, ${to - 1}) n, (SELECT '{${partnerIds}}'::text[]) p (partner)`,
    'VACUUM ANALYZE deposit',
  ]);
}

export function seededDeposit(number: number): SeededDeposit {
  const hash = createHash('sha256').update(String(number)).digest('hex').slice(0, 40);
  return { id: `${ID_PREFIX}${String(number).padStart(16, '0')}`, address: addressOf(hash) };
}

const ID_PREFIX = lowestId('dep', new Date()).slice(0, 14);
