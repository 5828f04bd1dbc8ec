import assert from 'node:assert/strict';
import type pg from 'pg';
import { createPartner } from '../../accounts/partners.ts';
import { type Orm, openOrm } from '../../platform/db/orm.ts';
import { query } from '../../platform/db/sql.ts';
import { transaction } from '../../platform/db/transaction.ts';
import { putClaimOff, takeAbandonedClaims } from '../../requests/abandoned-claims.ts';
import { connectTo, createTestDatabase, openOperatorOrm, ownerUrlOf } from '../support/postgres.ts';

describe('abandoned claims', () => {
  let orm: Orm;
  let owner: pg.Client;
  let partners: string[];
  before(async () => {
    const databaseUrl = await createTestDatabase();
    orm = await openOrm({ databaseUrl, poolSize: 8 });
    owner = await connectTo(ownerUrlOf(databaseUrl));
    const operator = { orm: await openOperatorOrm(databaseUrl), actor: 'test' };
    partners = [];
    for (const name of ['a', 'b', 'c']) {
      partners.push((await createPartner(operator, { name, secureDetailsEnabled: false })).id);
    }
    await operator.orm.close();
  });
  beforeEach(() => query(orm.em.fork(), 'DELETE FROM idempotency_claim'));
  after(async () => {
    await owner.end();
    await orm.close();
  });

  /** Unanswered claims of an account whose leases have run out, by name and number, with further columns. */
  async function abandon(partner: number, name: string, count: number, more: Record<string, string> = {}) {
    const columns = { lease_expires_at: "now() - interval '1 s'", ...more };
    await query(
      orm.em.fork(),
      `INSERT INTO idempotency_claim
         (id, partner_id, mode, operation, fingerprint, request_id, ${Object.keys(columns).join(', ')})
       SELECT $1 || '_' || lpad(n::text, 6, '0'), $2, 'live', 'create_card', '', 'req', ${Object.values(columns).join(', ')}
       FROM generate_series(1, $3) n`,
      [name, partners[partner], count],
    );
  }

  const take = async (limit: number): Promise<string[]> => {
    const taking = { operations: ['create_card'], limit, leaseMs: 60_000 } as const;
    const taken = await transaction(orm, (tx) => takeAbandonedClaims(tx, taking));
    return taken.map(({ id }) => id).sort();
  };

  it('are taken by one caller at a time, however many callers there are, and all in the end', async () => {
    await abandon(0, 'many', 200);
    const seen: string[] = [];
    const callers = Array.from({ length: 6 }, async () => {
      while (seen.length < 200) seen.push(...(await take(7)));
    });
    await Promise.all(callers);
    assert.equal(new Set(seen).size, 200);
    assert.equal(seen.length, 200);
    assert.deepEqual(await take(10), []);
  });

  it('are skipped while somebody works on them, without waiting', async () => {
    await abandon(0, 'held', 2);
    await orm.em.fork().transactional(async (tx) => {
      await query(tx, `SELECT FROM idempotency_claim WHERE id = 'held_000001' FOR NO KEY UPDATE`);
      assert.deepEqual(await take(10), ['held_000002']);
    });
    assert.deepEqual(await take(10), ['held_000001']);
  });

  it('do not include claims that are answered, leased, put off or of another operation', async () => {
    await abandon(0, 'answered', 1, { response_status: '201', response_body: "''" });
    await abandon(0, 'leased', 1, { lease_expires_at: "now() + interval '1 minute'" });
    await abandon(0, 'later', 1, { sweep_after: "now() + interval '1 minute'" });
    await abandon(0, 'due', 1);
    assert.deepEqual(await take(10), ['due_000001']);
    const taking = { operations: ['freeze_card'], limit: 1, leaseMs: 0 } as const;
    const [freeze] = await transaction(orm, (tx) => takeAbandonedClaims(tx, taking));
    assert.equal(freeze, undefined);
    await putClaimOff(orm, { claimId: 'later_000001', pauseMs: -1 });
    assert.deepEqual(await take(10), ['later_000001']);
  });

  it('include those leased or put off by a clock that has been set back since', async () => {
    await abandon(0, 'leased', 1, { lease_expires_at: "now() + interval '2 hours'" });
    await abandon(0, 'put_off', 1, { sweep_after: "now() + interval '2 hours'" });
    assert.deepEqual(await take(10), ['leased_000001', 'put_off_000001']);
  });

  it('are taken in the order of their last attempt, those never tried first', async () => {
    const tried = (seconds: number) => ({
      sweep_after: `now() - interval '${seconds} s'`,
      sweep_attempts: '3',
    });
    await abandon(0, 'long_ago', 1, tried(30));
    await abandon(0, 'just_now', 1, tried(10));
    await abandon(1, 'others', 1, tried(20));
    await abandon(0, 'new', 1);
    assert.deepEqual(await take(1), ['new_000001']);
    assert.deepEqual(await take(2), ['long_ago_000001', 'others_000001']);
    assert.deepEqual(await take(9), ['just_now_000001']);
  });

  it('are taken from every account in turn, whatever the backlog of one', async () => {
    await abandon(0, 'backlog', 500);
    await abandon(1, 'single', 1);
    await abandon(2, 'pair', 2);
    assert.deepEqual(await take(3), ['backlog_000001', 'pair_000001', 'single_000001']);
    assert.deepEqual(await take(3), ['backlog_000002', 'backlog_000003', 'pair_000002']);
  });

  it('are found by an index, however many other claims there are', async () => {
    await abandon(0, 'answered', 50_000, { response_status: '201', response_body: "''" });
    await abandon(0, 'put_off', 1_000, { sweep_after: "now() + interval '1 minute'", sweep_attempts: '1' });
    await abandon(0, 'due', 1_000);
    await owner.query('ANALYZE idempotency_claim');
    await transaction(orm, async (tx) => {
      const readSoFar = async () => {
        const [read] = await query<{ scans: number; rows: number }>(
          tx,
          `SELECT seq_scan::int AS scans, idx_tup_fetch::int AS rows FROM pg_stat_xact_user_tables
           WHERE relname = 'idempotency_claim'`,
        );
        return read ?? { scans: 0, rows: 0 };
      };
      const before = await readSoFar();
      const request = { operations: ['create_card'], limit: 16, leaseMs: 60_000 } as const;
      assert.equal((await takeAbandonedClaims(tx, request)).length, 16);
      const { scans, rows } = await readSoFar();
      assert.equal(scans - before.scans, 0);
      assert.ok(rows - before.rows < 100, `${rows - before.rows} rows were read`);
    });
  });
});
