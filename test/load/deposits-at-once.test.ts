import assert from 'node:assert/strict';
import pg from 'pg';
import { toBase58Address } from '../../dev/tron/address.ts';
import { tokenTransfer } from '../../dev/tron/drafts.ts';
import { checkLedger } from '../../ledger/check-ledger.ts';
import { query } from '../../platform/db/sql.ts';
import {
  type DepositStack,
  openAddress,
  readLeft,
  startDepositStack,
  untilScanned,
} from '../support/deposits/deposit-stack.ts';
import { addressHashOf, seedDeposits } from '../support/deposits/seed-deposits.ts';
import { ownerUrlOf } from '../support/postgres.ts';
import type { TestPartner } from '../support/stack.ts';
import { until } from '../support/until.ts';

const MANY = 5_000;
const AMOUNT_CENTS = 2_500;
/** 10 transactions a block, that pay 100 addresses each. */
const BLOCKS = 5;
const TRANSACTIONS = 10;

describe('5,000 open deposits of one account, all paid within a few blocks', () => {
  let deposits: DepositStack;
  let [many, one]: TestPartner[] = [];
  let oneDeposit: { id: string; address: string };

  before(async () => {
    deposits = await startDepositStack({}, { worker: false });
    const { stack, chain } = deposits;
    [many, one] = [await stack.createPartner('Many'), await stack.createPartner('One')];
    const owner = new pg.Client(ownerUrlOf(stack.config.databaseUrl));
    await owner.connect();
    const ids = await seedDeposits(owner, { partnerId: many.id, count: MANY });
    await owner.end();
    oneDeposit = await openAddress(one, AMOUNT_CENTS);
    const valueMicroUsdt = BigInt(AMOUNT_CENTS) * 10_000n;
    const payments = ids.map((id) => ({ to: toBase58Address(addressHashOf(id)), valueMicroUsdt }));
    const each = MANY / BLOCKS / TRANSACTIONS;
    for (let block = 0; block < BLOCKS; block++) {
      const drafts = Array.from({ length: TRANSACTIONS }, (_, at) => {
        const from = (block * TRANSACTIONS + at) * each;
        return tokenTransfer(payments.slice(from, from + each));
      });
      const last = tokenTransfer({ to: oneDeposit.address, valueMicroUsdt });
      chain.mine(block === BLOCKS - 1 ? [...drafts, last] : drafts);
    }
    chain.solidify();
  });
  after(() => deposits.stop());

  it("delay neither the credit nor the event nor the workflow of another account's deposit", async () => {
    const { stack } = deposits;
    await stack.startWorker();
    const em = stack.orm.em.fork();
    const told = await until(
      "the other account's deposit is confirmed, and its workflow has heard",
      async () => {
        const [row] = await query<{ untold: number }>(
          em,
          `SELECT (SELECT count(*)::int FROM deposit WHERE partner_id = $2 AND told_version < version) AS untold
         FROM deposit WHERE id = $1 AND status = 'confirmed' AND told_version = version`,
          [oneDeposit.id, many?.id],
        );
        return row;
      },
    );
    assert.ok(told.untold > MANY / 2, `${told.untold} of the many were not told yet`);
    const [ahead] = await query<{ credited: number; events: number }>(
      em,
      `SELECT (SELECT count(*)::int FROM deposit m WHERE m.partner_id = $2 AND m.confirmed_at < d.confirmed_at) AS credited,
         (SELECT count(*)::int FROM event m JOIN event o ON o.partner_id = d.partner_id AND m.id < o.id
          WHERE m.partner_id = $2) AS events
       FROM deposit d WHERE d.id = $1`,
      [oneDeposit.id, many?.id],
    );
    // In turns of an account: however many the other one has, it is served within the first few.
    assert.ok((ahead?.credited ?? MANY) < 1_000, `${ahead?.credited} of the many were credited before it`);
    assert.ok((ahead?.events ?? MANY) < 1_000, `${ahead?.events} events were written before its own`);
  });

  it('are credited once each, with one event each', async () => {
    const { stack, chain } = deposits;
    await untilScanned(deposits, chain.solidNumber());
    const em = stack.orm.em.fork();
    const [all] = await query(
      em,
      `SELECT count(*)::int AS deposits, count(*) FILTER (WHERE status = 'confirmed')::int AS confirmed,
         sum(credited_cents)::float8 AS cents,
         (SELECT count(DISTINCT body::json->'data'->'deposit'->>'id')::int FROM event WHERE partner_id = $1) AS told,
         (SELECT count(*)::int FROM event WHERE partner_id = $1) AS events
       FROM deposit WHERE partner_id = $1`,
      [many?.id],
    );
    const cents = MANY * AMOUNT_CENTS;
    assert.deepEqual(all, { deposits: MANY, confirmed: MANY, cents, told: MANY, events: MANY });
    const { json } = (await many?.call('GET', '/balance', { mode: 'live' })) ?? {};
    assert.deepEqual([json.available, json.total], [cents, cents]);
    const left = await readLeft(deposits, one as TestPartner, oneDeposit.id);
    assert.deepEqual([left.status, left.confirmedEvents, left.balanceCents], ['confirmed', 1, AMOUNT_CENTS]);
    assert.deepEqual(await checkLedger(em), []);
  });
});
