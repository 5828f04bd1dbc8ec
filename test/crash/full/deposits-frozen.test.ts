import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { tokenTransfer } from '../../../dev/tron/drafts.ts';
import type { DeadlyStatement } from '../../support/crash/die-at-statement.ts';
import { kill, scratchFolder, startProcess } from '../../support/crash/processes.ts';
import {
  openAddress,
  readLeft,
  startDepositStack,
  untilDeposit,
  untilScanned,
} from '../../support/deposits/deposit-stack.ts';
import { assertLedgerClean } from '../../support/money.ts';
import { until } from '../../support/until.ts';

const CENTS = 2_500;

describe('a worker that is frozen', () => {
  for (const [name, text] of [
    ['a scan, with the cursor locked', 'INSERT INTO deposit_payment'],
    ['a credit, with the balance locked', 'UPDATE deposit_payment'],
  ] as const) {
    it(`in the transaction of ${name}, is replaced by another, and does no harm when it resumes`, async () => {
      const folder = scratchFolder();
      const deposits = await startDepositStack({ logLevel: 'error' }, { worker: false });
      const { stack, chain } = deposits;
      const deadly: DeadlyStatement = {
        ...{ text, when: 'before commit', signal: 'SIGSTOP' },
        armedFile: join(folder, 'armed'),
        markerFile: join(folder, 'frozen'),
      };
      const frozen = await startProcess(stack.config, folder, 'worker/main.ts', {
        execArgv: ['--import', './test/support/crash/die-at-statement.ts'],
        env: { DIE_AT_STATEMENT: JSON.stringify(deadly) },
      });
      try {
        const [partner, other] = [await stack.createPartner(), await stack.createPartner()];
        const [first, second] = [await openAddress(partner, CENTS), await openAddress(other, CENTS)];
        const pay = (to: string) => {
          chain.mine([tokenTransfer({ to, valueMicroUsdt: 25_000_000n })]);
          return chain.solidify().number;
        };
        await untilScanned(deposits, chain.solidNumber());
        pay(first.address);
        writeFileSync(deadly.armedFile, '');
        await until('it is frozen', async () => existsSync(deadly.markerFile));
        await stack.startWorker();
        const number = pay(second.address);
        await untilDeposit(other, second.id, 'confirmed');
        // Without limits this takes for as long as the worker is frozen.
        await untilDeposit(partner, first.id, 'confirmed');

        process.kill(frozen.pid, 'SIGCONT');
        const third = await openAddress(partner, CENTS);
        await untilScanned(deposits, pay(third.address));
        await untilDeposit(partner, third.id, 'confirmed');
        assert.ok(chain.solidNumber() > number);
        for (const [account, { id }] of [
          [partner, first],
          [other, second],
        ] as const) {
          const left = await readLeft(deposits, account, id);
          assert.deepEqual([left.payments, left.confirmedEvents], [['credited'], 1]);
        }
        assert.equal((await readLeft(deposits, partner, third.id)).balanceCents, 2 * CENTS);
        await assertLedgerClean(stack);
      } finally {
        process.kill(frozen.pid, 'SIGCONT');
        await kill(frozen);
        await deposits.stop();
      }
    });
  }
});
