import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import type { Child } from '../../../dev/process/child.ts';
import type { Mode } from '../../../domain/mode.ts';
import { createCard, eventTypes, readCardRow } from '../../support/cards.ts';
import { untilAnswered } from '../../support/crash/operations.ts';
import { kill, scratchFolder, startProcess } from '../../support/crash/processes.ts';
import { assertBalance, assertLedgerClean, fundedPartner, priceOf } from '../../support/money.ts';
import { startTestStack, type TestPartner } from '../../support/stack.ts';
import { until } from '../../support/until.ts';

const CARDS = 30;
/** After how many answers of live mode a worker is killed. */
const KILLS = [3, 7, 11];
const DIGITS = [0, 41, 42, 43, 44, 45, 46, 48];

describe(`${CARDS} simultaneous POST /cards of one partner, while workers are killed -9 as answers come,`, () => {
  it('end with one answer each and the exact balance', async () => {
    const folder = scratchFolder();
    const stack = await startTestStack({ cardCreationWaitMs: 3_000, logLevel: 'error' }, { worker: false });
    const startWorker = () => startProcess(stack.config, folder, 'worker/main.ts');
    let worker: Child = await startWorker();
    try {
      const partner = await fundedPartner(stack);
      const asked = Array.from({ length: CARDS }, (_, index) => ({
        mode: (index % 3 === 0 ? 'test' : 'live') as Mode,
        amountCents: 10_000 + (DIGITS[index % DIGITS.length] ?? 0),
        idempotencyKey: randomUUID(),
        externalRef: randomUUID(),
      }));
      let answered = 0;
      const answers = Promise.all(
        // Those behind the first 16 get 503 where the worker is away for longer than a request waits.
        asked.map(async (request) => {
          const answer = await untilAnswered(() => create(partner, request));
          if (request.mode === 'live') answered += 1;
          return answer;
        }),
      );
      for (const answersBefore of KILLS) {
        await until(`${answersBefore} are answered`, () => answered >= answersBefore);
        await kill(worker);
        worker = await startWorker();
      }

      const spentCents = { test: 0, live: 0 };
      for (const [index, first] of (await answers).entries()) {
        const request = asked[index] as (typeof asked)[number];
        const { mode, amountCents } = request;
        const name = `${mode} ${amountCents}: ${first.status} ${first.text}`;
        const isDeclined = mode === 'live' && amountCents % 100 === 42;
        const fails = isDeclined || (mode === 'live' && amountCents % 100 === 43);
        if (first.status === 402) {
          assert.ok(fails, name);
        } else {
          assert.ok(first.status === 202 || (first.status === 201 && !fails), name);
          const ends = fails ? 'failed' : 'active';
          await until(`the end of ${name}`, async () => {
            const row = await readCardRow(stack, first.json.id);
            return row?.status === ends;
          });
          const told = fails ? ['card.issue_failed'] : ['card.issued'];
          assert.deepEqual(await eventTypes(stack, first.json.id), told, name);
          if (!fails) spentCents[mode] += priceOf(amountCents);
        }
        const again = await create(partner, request);
        assert.deepEqual([again.status, again.text], [first.status, first.text]);
      }
      for (const mode of ['test', 'live'] as const) {
        await assertBalance(stack, partner, mode, { spentCents: spentCents[mode], heldCents: 0 });
      }
      await assertLedgerClean(stack);
    } finally {
      await kill(worker);
      await stack.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

interface CardRequest {
  mode: Mode;
  amountCents: number;
  externalRef: string;
  idempotencyKey: string;
}

const create = (partner: TestPartner, { mode, amountCents, externalRef, idempotencyKey }: CardRequest) =>
  createCard(partner, { amount: amountCents, external_ref: externalRef }, { mode, idempotencyKey });
