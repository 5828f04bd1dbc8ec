import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import fc from 'fast-check';
import type pg from 'pg';
import { type AccountClock, accountTime } from '../../../domain/account-clock.ts';
import { connectTo, createTestDatabase, ownerUrlOf } from '../../support/postgres.ts';
import { propertyRuns } from '../../support/property-runs.ts';

const FOLDER = new URL('../../../platform/db/functions/', import.meta.url);
const START_MS = Date.parse('2026-11-23T12:00:00.000Z');

/** Functions of the database that take the real time, and why that is right. */
const REAL_TIME_IN_FUNCTIONS: Record<string, string> = {
  account_now: 'it is the one place',
  chain_audit: 'the audit log',
  claim_status_change: 'the end of a lease',
  drop_old_events: 'how long events are kept',
  drop_old_requests: 'how long requests are kept',
  'ledger.apply_operations': 'it turns it into the time of the account',
  'ledger.tell_crossing': 'it turns it into the time of the account; the id keeps the real time',
  make_partition: 'partitions are ranges of ids, or of the days of postings',
  note_true_up: 'live mode: what the card network has to move',
  prune_deliveries: 'how long events are kept',
  rows_without_partition: 'partitions are ranges of ids, or of the days of postings',
  stamp_adjustment_request: 'what operators did',
};

/** Columns of tenants' rows whose default is the real time, and why nothing is dated by it that should not be. */
const REAL_TIME_DEFAULTS: Record<string, string> = {
  'adjustment_request.created_at': 'what operators did',
  'balance_adjustment.created_at': 'what operators did',
  'api_key.created_at': 'what operators did',
  'card_reveal.created_at': 'the audit log; the limits turn it into the time of the account',
  'refused_reveal.created_at': 'the audit log',
  'deposit.changed_at': 'live mode: the chain; given in test mode',
  'deposit_payment.found_at': 'what operators see of live mode',
  'unconfirmed_payment.asked_at': 'live mode: the chain',
  'unconfirmed_payment.seen_at': 'live mode: the chain',
  'idempotency_claim.created_at': 'how long keys are kept',
  'ledger.transfer.booked_on': 'partitions',
  'true_up.created_at': 'live mode: what the card network has to move',
  'webhook_allowance.full_at': 'a rate limit',
  'workbench_session.created_at': "a browser's session",
  // Their statements give them, in the time of the account.
  'card.counted_on': 'given',
  'faucet_credit.created_at': 'given',
  'ledger.transfer.created_at': 'given',
  'webhook_endpoint.created_at': 'given',
  'webhook_replay.due_at': 'the pace of a replay is in real time',
};

describe("an account's time", () => {
  let client: pg.Client;
  beforeEach(async () => {
    client = await connectTo(ownerUrlOf(await createTestDatabase()));
    await client.query("INSERT INTO partner (id, name) VALUES ('prt_a', 'A'), ('prt_b', 'B')");
  });
  afterEach(() => client.end());

  const ask = async (call: string, values: unknown[]): Promise<number> => {
    const { rows } = await client.query<{ at: Date }>(`SELECT ${call} AS at`, values);
    return rows[0]?.at.getTime() ?? Number.NaN;
  };

  it('runs at the pace of real time, jumps at each advance, and is found again from either side', async () => {
    const advance = fc.record({ laterMs: fc.nat(10_000), seconds: fc.integer({ min: 1, max: 20 }) });
    await fc.assert(
      fc.asyncProperty(
        fc.array(advance, { maxLength: 6 }),
        fc.array(fc.integer({ min: -5_000, max: 150_000 }), { minLength: 1, maxLength: 8 }),
        async (advances, afterMs) => {
          await client.query('DELETE FROM test_clock_advance');
          let atMs = START_MS;
          let offset = 0;
          const jumps: { atMs: number; secondsBefore: number; secondsAfter: number }[] = [];
          for (const { laterMs, seconds } of advances) {
            atMs += laterMs + 1;
            jumps.unshift({ atMs, secondsBefore: offset, secondsAfter: offset + seconds });
            offset += seconds;
            await client.query("INSERT INTO test_clock_advance VALUES ('prt_a', $1, $2, $3, $4)", [
              new Date(atMs),
              offset - seconds,
              offset,
              new Date(atMs + offset * 1_000),
            ]);
          }
          const model = (realMs: number) =>
            realMs + 1_000 * (jumps.find(({ atMs }) => atMs <= realMs)?.secondsAfter ?? 0);
          for (const ms of afterMs) {
            const at = new Date(START_MS + ms);
            const time = await ask("account_time('prt_a', 'test', $1)", [at]);
            assert.equal(time, model(at.getTime()));
            assert.equal(await ask("account_time('prt_a', 'live', $1)", [at]), at.getTime());
            assert.equal(await ask("account_time('prt_b', 'test', $1)", [at]), at.getTime());
            const realMs = await ask("real_time('prt_a', 'test', $1)", [at]);
            assert.ok(model(realMs) >= at.getTime(), 'it was not that late yet');
            assert.ok(model(realMs - 1) < at.getTime(), 'it was that late before');
            const { rows } = await client.query<{ clock: AccountClock }>(
              "SELECT lock_test_clock('prt_a') AS clock",
            );
            const clock = rows[0]?.clock ?? null;
            assert.deepEqual(
              clock?.advances ?? [],
              jumps.map(({ secondsAfter: _, ...jump }) => jump),
            );
            assert.equal(clock?.offsetSeconds ?? 0, offset);
            assert.equal(accountTime(clock, at).getTime(), time);
          }
        },
      ),
      { numRuns: propertyRuns(6) },
    );
  });

  it('is asked by every function of the database that dates a row, unless a reason is given', async () => {
    const real = [];
    for (const file of await readdir(FOLDER)) {
      const text = (await readFile(new URL(file, FOLDER), 'utf8')).replaceAll(/--.*$/gm, '');
      if (/\bnow\(\)|clock_timestamp|current_date|current_timestamp/i.test(text))
        real.push(file.replace(/\.sql$/, ''));
    }
    assert.deepEqual(real.sort(), Object.keys(REAL_TIME_IN_FUNCTIONS).sort());
  });

  it("is not left to the default of a tenant's column, unless a reason is given", async () => {
    const { rows } = await client.query<{ name: string }>(`
      SELECT CASE n.nspname WHEN 'public' THEN '' ELSE n.nspname || '.' END || c.relname || '.' || a.attname AS name
      FROM pg_attrdef d JOIN pg_class c ON c.oid = d.adrelid JOIN pg_namespace n ON n.oid = c.relnamespace
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = d.adnum
      WHERE pg_get_expr(d.adbin, d.adrelid) ~ 'now\\(\\)|clock_timestamp|CURRENT_' AND NOT c.relispartition
        AND (SELECT count(*) FROM pg_attribute t WHERE t.attrelid = c.oid AND t.attname IN ('partner_id', 'mode')) = 2`);
    assert.deepEqual(rows.map(({ name }) => name).sort(), Object.keys(REAL_TIME_DEFAULTS).sort());
  });
});
