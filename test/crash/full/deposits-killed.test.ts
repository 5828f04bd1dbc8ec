import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Child } from '../../../dev/process/child.ts';
import { tokenTransfer } from '../../../dev/tron/drafts.ts';
import { query } from '../../../platform/db/sql.ts';
import type { DeadlyStatement } from '../../support/crash/die-at-statement.ts';
import { kill, scratchFolder, startProcess } from '../../support/crash/processes.ts';
import {
  type DepositStack,
  openAddress,
  readLeft,
  startDepositStack,
  untilDeposit,
  untilScanned,
} from '../../support/deposits/deposit-stack.ts';
import { inParallel } from '../../support/in-parallel.ts';
import { assertLedgerClean } from '../../support/money.ts';
import type { TestPartner } from '../../support/stack.ts';
import { until } from '../../support/until.ts';

type Place = Pick<DeadlyStatement, 'text' | 'when'>;

/** Every step between the nodes and the workflow of a deposit, by the statement it begins or ends with. */
const SCAN: Record<string, Place> = {
  'before it looks up the addresses': { text: "encode(address_hash, 'hex')", when: 'before' },
  'before it moves the cursor': { text: 'update "chain_scan" set "block_number"', when: 'before' },
  'before it records the payments': { text: 'INSERT INTO deposit_payment', when: 'before' },
  'before it withdraws hints': { text: `"status" = 'confirming' and "seen_block_number"`, when: 'before' },
  'before the commit of what it found': { text: 'INSERT INTO deposit_payment', when: 'before commit' },
  'after the commit of what it found': { text: 'INSERT INTO deposit_payment', when: 'after commit' },
};
const CREDIT: Record<string, Place> = {
  'before it locks the deposits': { text: 'FROM patience, deposit d', when: 'before' },
  'before it moves the money': { text: 'ledger.apply_operations', when: 'before' },
  'before it judges the payments': { text: 'UPDATE deposit_payment', when: 'before' },
  'before it writes the deposits': { text: 'UPDATE deposit d SET status = w.status', when: 'before' },
  'before it writes the events': { text: 'INSERT INTO event', when: 'before' },
  'before the commit of the credit': { text: 'UPDATE deposit_payment', when: 'before commit' },
  'after the commit of the credit': { text: 'UPDATE deposit_payment', when: 'after commit' },
};
const TELL: Record<string, Place> = {
  'before it informs the workflow': { text: 'UPDATE deposit d SET lease_expires_at', when: 'after' },
  'after it has informed the workflow': { text: 'update "deposit" set "told_version"', when: 'before' },
  'after it has recorded that the workflow is informed': {
    text: 'update "deposit" set "told_version"',
    when: 'after',
  },
};

const CENTS = 2_500;
const EXACT = 25_000_000n;

describe('a worker that processes deposits', function () {
  this.timeout(400_000);
  const rows = [SCAN, { ...CREDIT, ...TELL }].map((places) => Object.entries(places));
  let ends: Promise<void>[][];
  before(async () => {
    const ways = rows.map((places) => new Way(places));
    ends = rows.map((places) => places.map(() => Promise.resolve()));
    const runs = inParallel(
      2,
      ways.map((way) => () => way.go()),
    );
    ends = rows.map((places, index) =>
      places.map(async ([name]) => {
        await runs[index];
        await ways[index]?.assertEnd(name);
      }),
    );
    for (const end of ends.flat()) end.catch(() => {});
  });

  for (const [index, places] of rows.entries()) {
    for (const [at, [name]] of places.entries())
      it(`loses and doubles nothing when it is killed -9 ${name}`, () => ends[index]?.[at]);
  }
});

/** One installation whose workers die one after the other, each at its own place and with its own deposits. */
class Way {
  readonly #places: [string, Place][];
  readonly #ends = new Map<string, unknown>();

  constructor(places: [string, Place][]) {
    this.#places = places;
  }

  async go(): Promise<void> {
    const folder = scratchFolder();
    const deposits = await startDepositStack({ logLevel: 'error' }, { worker: false });
    let worker: Child | undefined;
    try {
      const partner = await deposits.stack.createPartner();
      const opened = new Map<string, { id: string; twice: string }>();
      for (const [index, [name, place]] of this.#places.entries()) {
        const armedFile = join(folder, `armed-${index}`);
        const deadly: DeadlyStatement = { ...place, armedFile, markerFile: join(folder, `killed-${index}`) };
        worker = await startProcess(deposits.stack.config, folder, 'worker/main.ts', {
          execArgv: ['--import', './test/support/crash/die-at-statement.ts'],
          env: { DIE_AT_STATEMENT: JSON.stringify(deadly) },
        });
        opened.set(name, await this.#pay(deposits, partner, () => writeFileSync(armedFile, '')));
        assert.equal(await worker.exited, 'signal SIGKILL', `${name}: ${worker.lastLines().join('\n')}`);
      }
      await deposits.stack.startWorker();
      await untilScanned(deposits, deposits.chain.solidNumber());
      for (const [name, { id, twice }] of opened) {
        await untilDeposit(partner, id, 'confirmed');
        await untilDeposit(partner, twice, 'needs_review');
        this.#ends.set(name, [
          await readLeft(deposits, partner, id),
          await readLeft(deposits, partner, twice),
        ]);
      }
      await until('every workflow has heard', async () => {
        const [row] = await query<{ untold: number }>(
          deposits.stack.orm.em.fork(),
          'SELECT count(*)::int AS untold FROM deposit WHERE told_version < version',
        );
        return row?.untold === 0;
      });
      await assertLedgerClean(deposits.stack);
    } finally {
      if (worker !== undefined) await kill(worker);
      await deposits.stop();
    }
  }

  /** Makes solid at once what pays one deposit once and another twice, after all before it was taken. */
  async #pay(deposits: DepositStack, partner: TestPartner, arm: () => void) {
    const [once, twice] = [await openAddress(partner, CENTS), await openAddress(partner, CENTS)];
    await untilScanned(deposits, deposits.chain.solidNumber());
    deposits.chain.mine([
      tokenTransfer([once, twice, twice].map(({ address: to }) => ({ to, valueMicroUsdt: EXACT }))),
    ]);
    deposits.chain.solidify();
    arm();
    return { id: once.id, twice: twice.id };
  }

  /** Every account's balance has all of its deposits, each once. */
  async assertEnd(name: string): Promise<void> {
    const balanceCents = 2 * CENTS * this.#places.length;
    const common = { confirmedEvents: 1, balanceCents };
    assert.deepEqual(this.#ends.get(name), [
      { ...common, status: 'confirmed', receivedCents: CENTS, payments: ['credited'] },
      { ...common, status: 'needs_review', receivedCents: 2 * CENTS, payments: ['credited', 'already_paid'] },
    ]);
  }
}
