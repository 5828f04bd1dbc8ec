import assert from 'node:assert/strict';
import { query } from '../../../db/sql.ts';
import { tokenTransfer } from '../../../dev/tron/drafts.ts';
import { checkLedger } from '../../../ledger/check-ledger.ts';
import {
  type DepositStack,
  newChain,
  openAddress,
  readLeft,
  startDepositStack,
  untilScanned,
} from '../../support/deposits/deposit-stack.ts';
import { asOwner } from '../../support/postgres.ts';
import type { TestPartner } from '../../support/stack.ts';
import { until } from '../../support/until.ts';

const HOUR_MS = 3_600_000;
/** A day in a quarter of TRON's blocks, all but a few of them empty. */
const EVERY_MS = 12_000;
const BLOCKS = (24 * HOUR_MS) / EVERY_MS;
const AMOUNT_CENTS = 2_500;
const EXACT = BigInt(AMOUNT_CENTS) * 10_000n;

describe('a worker that was away for a day', function () {
  this.timeout(300_000);
  const dayAgoMs = Date.now() - 25 * HOUR_MS;
  let deposits: DepositStack;
  let partner: TestPartner;

  before(async () => {
    const chain = newChain({ startTime: new Date(dayAgoMs - HOUR_MS), everyMs: EVERY_MS });
    deposits = await startDepositStack({}, { worker: false, chain });
    partner = await deposits.stack.createPartner();
  });
  after(() => deposits.stop());

  it('takes every block that it has missed, and credits what was paid in time', async () => {
    const { stack, chain } = deposits;
    const names = ['soon', 'last second', 'late', 'unpaid'] as const;
    const opened = new Map<string, { id: string; address: string }>();
    for (const name of names) opened.set(name, await openAddress(partner, AMOUNT_CENTS));
    const of = (name: (typeof names)[number]) => opened.get(name) as { id: string; address: string };
    const openedAt = new Date(dayAgoMs);
    const expiresAt = new Date(dayAgoMs + 8 * HOUR_MS);
    await asOwner(
      stack.config.databaseUrl,
      `UPDATE deposit SET created_at = '${openedAt.toISOString()}', expires_at = '${expiresAt.toISOString()}'`,
    );
    chain.mineUntil(openedAt);
    await stack.startWorker();
    await untilScanned(deposits, chain.solidNumber());
    await stack.stopWorker();

    const first = chain.headNumber() + 1;
    const pay = (name: (typeof names)[number], time: Date) => {
      chain.mineUntil(new Date(time.getTime() - 1));
      chain.mine([tokenTransfer({ to: of(name).address, valueMicroUsdt: EXACT })], { time });
    };
    pay('soon', new Date(dayAgoMs + HOUR_MS));
    pay('last second', expiresAt);
    pay('late', new Date(expiresAt.getTime() + 1));
    chain.mineMany(BLOCKS - (chain.headNumber() + 1 - first));

    const before = deposits.nodes[0]?.calls.get('/walletsolidity/getblockbynum') ?? 0;
    await stack.startWorker();
    await until('the scan is at the head of the chain', async () => {
      const [scan] = await query<{ block_number: string }>(
        stack.orm.em.fork(),
        'SELECT block_number FROM chain_scan',
      );
      return Number(scan?.block_number) >= chain.solidNumber();
    });
    await untilScanned(deposits, chain.solidNumber());
    const asked = (deposits.nodes[0]?.calls.get('/walletsolidity/getblockbynum') ?? 0) - before;
    assert.ok(asked >= chain.solidNumber() - first, `${asked} blocks were asked for`);

    const left = async (name: (typeof names)[number]) => {
      const { status, payments, confirmedEvents } = await readLeft(deposits, partner, of(name).id);
      return { status, payments, confirmedEvents };
    };
    assert.deepEqual(await left('soon'), { status: 'confirmed', payments: ['credited'], confirmedEvents: 1 });
    assert.deepEqual(await left('last second'), await left('soon'));
    assert.deepEqual(await left('late'), { status: 'needs_review', payments: ['late'], confirmedEvents: 0 });
    assert.deepEqual(await left('unpaid'), { status: 'expired', payments: [], confirmedEvents: 0 });
    const { json } = await partner.call('GET', '/balance', { mode: 'live' });
    assert.equal(json.total, 2 * AMOUNT_CENTS);
    assert.deepEqual(await checkLedger(stack.orm.em.fork()), []);
  });
});
