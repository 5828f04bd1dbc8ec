import type pg from 'pg';
import { bookPayments } from '../../payments/book-payments.ts';
import type { Orm } from '../../platform/db/orm.ts';
import { transaction } from '../../platform/db/transaction.ts';
import { connectTo, ownerUrlOf } from '../../test/support/postgres.ts';
import type { BenchCard } from '../support/seed.ts';
import {
  HELD_EVERY,
  type IssuedPayments,
  PAYMENT_CENTS,
  tokenDigits,
  UPDATED_AFTER_MS,
} from './issued-payments.ts';
import type { BenchNetwork } from './start-issuer.ts';

const TTL_MS = 7 * 86_400_000;

interface SeededPayments {
  payments: IssuedPayments;
  network: BenchNetwork;
  cards: readonly BenchCard[];
}

/**
 * Fills a database with the payments, as we have them. Those that differ are booked one by one, as they were
 * before the issuer stopped telling us of them; two of them are what all others are copied from, in bulk, with
 * the ledger's transfers and entries.
 */
export async function seedPayments(
  service: Orm,
  databaseUrl: string,
  { payments, network, cards }: SeededPayments,
): Promise<void> {
  const book = (number: number, standing: 'held' | 'cleared') => {
    const { cardId } = cards[number % cards.length] as BenchCard;
    const snapshot = network.snapshot(number, standing);
    const payment = { cardId, paymentId: snapshot.paymentId, snapshot, readAt: new Date() };
    return transaction(service, (tx) => bookPayments(tx, [payment], { ttlMs: TTL_MS }));
  };
  const samples = new Map<'held' | 'cleared', number>();
  for (const [number, difference] of payments.differences) {
    if (difference === 'never told') continue;
    await book(number, 'held');
    if (difference === 'not at the issuer') await book(number, 'cleared');
    samples.set(difference === 'not at the issuer' ? 'cleared' : 'held', number);
  }

  await using owner = await connectTo(ownerUrlOf(databaseUrl));
  // No triggers and no foreign keys: the rows are right, and `ledger check` says so afterwards.
  await owner.query('SET session_replication_role = replica');
  await owner.query('BEGIN');
  await readSamples(owner, network, samples);
  await owner.query(COPIED, [
    cards.map(({ cardId }) => cardId),
    payments.count,
    [...payments.differences.keys()],
    payments.createdMs(0),
    payments.createdMs(1) - payments.createdMs(0),
  ]);
  for (const statement of COPIES) await owner.query(statement);
  await owner.query('COMMIT');
  for (const table of TABLES) await owner.query(`VACUUM ANALYZE ${table}`);
}

async function readSamples(
  owner: pg.Client,
  network: BenchNetwork,
  samples: ReadonlyMap<'held' | 'cleared', number>,
): Promise<void> {
  await owner.query(SAMPLES);
  for (const [standing, number] of samples) {
    const version = network.versionMs(number, standing) ?? 'none of its own';
    await owner.query(SAMPLE, [standing === 'held', tokenDigits(number), String(version)]);
  }
}

const TABLES = [
  'payment',
  'card_authorization',
  'card_transaction',
  'ledger.transfer',
  'ledger.entry',
  'ledger.account',
];

/** Rows as text, in which a copy has its own digits and its own version. */
const SAMPLES = `
  CREATE TEMP TABLE sample (is_held boolean, digits text, version text, payment text, authorization_row text,
    transaction_row text) ON COMMIT DROP`;
const SAMPLE = `
  INSERT INTO sample
  SELECT $1, $2, $3, to_jsonb(y)::text, to_jsonb(a)::text, to_jsonb(t)::text
  FROM payment y JOIN card_authorization a ON a.id = y.authorization_id
    LEFT JOIN card_transaction t ON t.authorization_id = a.id
  WHERE y.payment_id LIKE '%' || $2`;

/** What each copy has of its own. A card's clearings follow each other in its account's chain. */
const COPIED = `
  CREATE TEMP TABLE copied ON COMMIT DROP AS
  SELECT n, s.is_held, k.id AS card_id, c.partner_id, c.created, lpad(n::text, 12, '0') AS digits,
    (extract(epoch FROM c.created) * 1000)::bigint + CASE WHEN s.is_held THEN 0 ELSE ${UPDATED_AFTER_MS} END AS version,
    'auth_' || id_time(c.created) || lpad(n::text, 16, '0') AS authorization_id,
    'txn_' || id_time(c.created) || lpad(n::text, 16, '0') AS transaction_id,
    md5('hold ' || n)::uuid AS hold_id, md5('post ' || n)::uuid AS post_id,
    b.version + count(*) FILTER (WHERE NOT s.is_held) OVER chain AS account_version,
    b.posted - ${PAYMENT_CENTS} * count(*) FILTER (WHERE NOT s.is_held) OVER chain AS balance_after
  FROM generate_series(1, $2::bigint) n
    JOIN unnest($1::text[]) WITH ORDINALITY k (id, place) ON k.place = n % cardinality($1::text[]) + 1
    JOIN sample s ON s.is_held = (n % ${HELD_EVERY} = 0)
    JOIN ledger.account b ON b.card_id = k.id
    CROSS JOIN LATERAL (SELECT b.partner_id, to_timestamp(($4::bigint + n * $5::bigint) / 1000.0) AS created) c
  WHERE n <> ALL ($3::bigint[])
  WINDOW chain AS (PARTITION BY k.id ORDER BY n)`;

const copyOf = (table: string, sample: string, own: string) => `
  INSERT INTO ${table}
  SELECT r.* FROM copied c JOIN sample s USING (is_held)
    CROSS JOIN LATERAL jsonb_populate_record(NULL::${table},
      replace(replace(s.${sample}, s.digits, c.digits), s.version, c.version::text)::jsonb
        || jsonb_build_object('card_id', c.card_id, 'authorization_id', c.authorization_id, ${own})) r
  ORDER BY c.n`;

const transfers = (phase: 'pending' | 'post', where: string) => {
  const [id, pendingId] = phase === 'pending' ? ['hold_id', 'NULL::uuid'] : ['post_id', 'hold_id'];
  return `
    INSERT INTO ledger.transfer (id, fingerprint, operation_id, partner_id, mode, code, phase, pending_id, debit_id,
      credit_id, amount, created_at)
    SELECT ${id}, sha256(convert_to(concat_ws(' ', o.operation_id, ${id}, partner_id, 'live', 'authorization', '${phase}',
        o.debit_id, o.credit_id, ${PAYMENT_CENTS}, ${pendingId}) || E'\\n', 'UTF8')),
      o.operation_id, partner_id, 'live', 'authorization', '${phase}', ${pendingId}, o.debit_id, o.credit_id,
      ${PAYMENT_CENTS}, created
    FROM copied CROSS JOIN LATERAL (SELECT 'auth/' || authorization_id AS operation_id,
      'card/' || card_id AS debit_id, 'network/live/' || partner_id AS credit_id) o
    WHERE ${where} ORDER BY n`;
};

const COPIES = [
  copyOf('card_authorization', 'authorization_row', `'id', c.authorization_id, 'created_at', c.created`),
  `${copyOf(
    'card_transaction',
    'transaction_row',
    `'id', c.transaction_id, 'card_balance_after_cents', c.balance_after, 'created_at', c.created`,
  ).replace('ORDER BY', 'WHERE NOT c.is_held ORDER BY')}`,
  copyOf('payment', 'payment', `'partner_id', c.partner_id`),
  transfers('pending', 'true'),
  transfers('post', 'NOT is_held'),
  `INSERT INTO ledger.entry (transfer_id, side, account_id, amount, balance_after, account_version)
   SELECT post_id, 'debit'::ledger.side, 'card/' || card_id, ${PAYMENT_CENTS}, balance_after, account_version
   FROM copied WHERE NOT is_held
   UNION ALL
   SELECT post_id, 'credit'::ledger.side, 'network/live/' || partner_id, ${PAYMENT_CENTS}, NULL, NULL FROM copied WHERE NOT is_held`,
  `UPDATE ledger.account a SET posted = a.posted - ${PAYMENT_CENTS} * c.cleared, held = a.held + ${PAYMENT_CENTS} * c.held,
     version = a.version + c.cleared
   FROM (SELECT card_id, count(*) FILTER (WHERE NOT is_held) AS cleared, count(*) FILTER (WHERE is_held) AS held
     FROM copied GROUP BY card_id) c
   WHERE a.card_id = c.card_id`,
];
