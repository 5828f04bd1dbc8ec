import { createHash } from 'node:crypto';
import { adjustBalance } from '../../accounts/adjust-balance.ts';
import { createPartner } from '../../accounts/partners.ts';
import { toBase58Address } from '../../dev/tron/address.ts';
import { FAKE_USDT_CONTRACT } from '../../dev/tron/drafts.ts';
import type { Mode, Tenant } from '../../domain/mode.ts';
import { applyPostings } from '../../ledger/apply-posting.ts';
import { encodePosting } from '../../ledger/posting.ts';
import { lowestId, newId } from '../../platform/crypto/new-id.ts';
import type { Orm } from '../../platform/db/orm.ts';
import type { Transactor } from '../../platform/db/sql.ts';
import type { OperatorContext } from '../../requests/operator-context.ts';
import { asOwner, connectTo, ownerUrlOf } from '../../test/support/postgres.ts';

/**
 * Inserts the partner's active cards numbered `from` to `to`, as the owner of the database and without the
 * ledger's function, since these cards are only read.
 */
export async function seedCards(
  databaseUrl: string,
  partnerId: string,
  from: number,
  to: number,
): Promise<void> {
  await asOwner(
    databaseUrl,
    `WITH made AS (
       INSERT INTO card (id, partner_id, mode, status, external_ref, product_code, network, network_card_id, last4,
         exp_month, exp_year, funding_cents, fees, created_at)
       SELECT 'card_' || lpad(n::text, 26, '0'), $1, 'test', 'active', 'seed-' || n, 'BENCH', 'visa', 'k1/sim', '4242',
         1, 2030, 1000, '[]', now()
       FROM generate_series($2::int, $3::int) n
       RETURNING id
     )
     INSERT INTO ledger.account (id, partner_id, mode, kind, card_id, posted)
     SELECT 'card/' || id, $1, 'test', 'card', id, 0 FROM made`,
    [partnerId, from, to],
  );
  await asOwner(databaseUrl, 'VACUUM ANALYZE card, ledger.account');
}

export const seededCardId = (n: number): string => `card_${String(n).padStart(26, '0')}`;

const CARD_CENTS = 1_000_000_000;
const LOADS_AT_ONCE = 100;

export interface BenchCard extends Tenant {
  cardId: string;
}

/**
 * Creates active cards with more money than a measurement spends: `cardsEach` on each of `accounts` new
 * accounts. The operator funds the accounts, and the service loads the cards, as the ledger allows each.
 */
export async function seedFundedCards(
  operator: Pick<OperatorContext, 'orm' | 'actor'>,
  service: Orm,
  databaseUrl: string,
  asked: { mode: Mode; accounts: number; cardsEach: number /** By default now. */; madeAt?: Date },
): Promise<BenchCard[]> {
  const { mode, accounts, cardsEach, madeAt } = asked;
  await using owner = await connectTo(ownerUrlOf(databaseUrl));
  const cards: BenchCard[] = [];
  for (let account = 0; account < accounts; account++) {
    const { id: partnerId } = await createPartner(operator, { name: 'Bench', secureDetailsEnabled: false });
    const cardIds = Array.from({ length: cardsEach }, () => newId('card', madeAt));
    await owner.query(
      `INSERT INTO card (id, partner_id, mode, status, external_ref, product_code, network, network_card_id, last4,
         exp_month, exp_year, funding_cents, fees, created_at)
       SELECT id, $2, $4, 'active', id, 'BENCH', 'visa', id, '4242', 1, 2030, $3, '[]', now() FROM unnest($1::text[]) id`,
      [cardIds, partnerId, CARD_CENTS, mode],
    );
    const amountCents = CARD_CENTS * (cardsEach + 1);
    await adjustBalance(operator, { partnerId, mode, amountCents, reason: 'funds of a bench', key: null });
    const load = { step: 'load', code: 'issue_load', debit: 'prepaid', phase: 'single' } as const;
    const loads = cardIds.map((cardId) =>
      encodePosting({
        operationId: `issue/${cardId}`,
        partnerId,
        mode,
        transfers: [{ ...load, credit: { cardId }, amountCents: CARD_CENTS }],
      }),
    );
    for (let first = 0; first < cardsEach; first += LOADS_AT_ONCE)
      await applyPostings(service.em.fork() as Transactor, loads.slice(first, first + LOADS_AT_ONCE));
    await owner.query('UPDATE account_usage SET open_cards = $3 WHERE partner_id = $1 AND mode = $2', [
      partnerId,
      mode,
      cardsEach,
    ]);
    cards.push(...cardIds.map((cardId) => ({ cardId, partnerId, mode })));
  }
  // Only these: PostgreSQL plans for a table known to be empty as if it stayed so.
  await owner.query('VACUUM ANALYZE card, ledger.account');
  return cards;
}

/** Inserts this many delivered test-mode events, an hour old, as the owner of the database. */
export async function seedEvents(databaseUrl: string, partnerId: string, count: number): Promise<void> {
  const at = new Date(Date.now() - 3_600_000);
  await using owner = await connectTo(ownerUrlOf(databaseUrl));
  // In one transaction: otherwise a relay would send them before they are marked as delivered.
  await owner.query('BEGIN');
  await owner.query(
    `INSERT INTO event (id, partner_id, mode, type, body, created_at)
     SELECT $2 || lpad(n::text, 16, '0'), $1, 'test', 'card.transaction.created',
       json_build_object('id', $2 || lpad(n::text, 16, '0'), 'type', 'card.transaction.created',
         'created', '2026-01-01T00:00:00.000Z', 'mode', 'test', 'data', json_build_object('filler', repeat('x', 500)))::text, $3
     FROM generate_series(1, $4::int) n`,
    [partnerId, lowestId('evt', at).slice(0, 14), at, count],
  );
  await owner.query(`UPDATE delivery SET status = 'delivered' WHERE partner_id = $1`, [partnerId]);
  await owner.query('COMMIT');
  await owner.query('VACUUM ANALYZE event, delivery');
}

export const DEPOSIT_CENTS = 2_500;

/** Numbers of deposits: `from` is the first, `to` is one past the last. */
export interface Range {
  from: number;
  to: number;
}

/** Makes the scan begin after this block. */
export async function seedScan(databaseUrl: string, blockNumber: number): Promise<void> {
  await asOwner(
    databaseUrl,
    `INSERT INTO chain_scan (network, block_number) VALUES ('private', ${blockNumber})`,
  );
}

/**
 * Inserts open deposits with these numbers, for the partners in turn, as the owner of the database. Each has
 * an address of its own and expires after 8 hours. They count as known to their workflows.
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

export function seededDeposit(number: number): { id: string; address: string } {
  const hash = createHash('sha256').update(String(number)).digest('hex').slice(0, 40);
  return { id: `${ID_PREFIX}${String(number).padStart(16, '0')}`, address: toBase58Address(hash) };
}

const ID_PREFIX = lowestId('dep', new Date()).slice(0, 14);
