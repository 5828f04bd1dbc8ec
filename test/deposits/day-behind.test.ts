import assert from 'node:assert/strict';
import { tokenTransfer } from '../../dev/tron/drafts.ts';
import { checkLedger } from '../../ledger/check-ledger.ts';
import { newChain, openAddress, readLeft } from '../support/deposits/deposit-stack.ts';
import {
  type ScannedChain,
  startAddressStack,
  startScannedChain,
} from '../support/deposits/scanned-chain.ts';
import { asOwner } from '../support/postgres.ts';
import type { TestPartner } from '../support/stack.ts';

const HOUR_MS = 3_600_000;
/** A day in a twentieth of TRON's blocks, all but a few of them empty. */
const EVERY_MS = 60_000;
const BLOCKS = (24 * HOUR_MS) / EVERY_MS;
const AMOUNT_CENTS = 2_500;
const EXACT = BigInt(AMOUNT_CENTS) * 10_000n;

describe('a worker that was away for a day', () => {
  const dayAgoMs = Date.now() - 25 * HOUR_MS;
  let scanned: ScannedChain;
  let partner: TestPartner;

  before(async () => {
    const chain = newChain({ startTime: new Date(dayAgoMs - HOUR_MS), everyMs: EVERY_MS });
    const stack = await startAddressStack();
    scanned = await startScannedChain(stack, { chain });
    partner = await stack.createPartner();
  });
  after(async () => {
    await scanned.stop();
    await scanned.stack.stop();
  });

  it('takes every block that it has missed, and credits what was paid in time', async () => {
    const { stack, chain, look } = scanned;
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
    await look();

    const first = chain.headNumber() + 1;
    const pay = (name: (typeof names)[number], time: Date) => {
      chain.mineUntil(new Date(time.getTime() - 1));
      chain.mine([tokenTransfer({ to: of(name).address, valueMicroUsdt: EXACT })], { time });
    };
    pay('soon', new Date(dayAgoMs + HOUR_MS));
    pay('last second', expiresAt);
    pay('late', new Date(expiresAt.getTime() + 1));
    chain.mineMany(BLOCKS - (chain.headNumber() + 1 - first));

    const before = scanned.nodes[0]?.calls.get('/walletsolidity/getblockbynum') ?? 0;
    await look();
    const asked = (scanned.nodes[0]?.calls.get('/walletsolidity/getblockbynum') ?? 0) - before;
    assert.ok(asked >= chain.solidNumber() - first, `${asked} blocks were asked for`);

    const left = async (name: (typeof names)[number]) => {
      const { status, payments, confirmedEvents } = await readLeft(scanned, partner, of(name).id);
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
