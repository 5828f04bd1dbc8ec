import assert from 'node:assert/strict';
import fc from 'fast-check';
import { applyOperations } from '../../../ledger/apply-operation.ts';
import { checkLedger } from '../../../ledger/check-ledger.ts';
import { encodeOperation } from '../../../ledger/operation.ts';
import { createClients, WAYS } from '../../support/ledger/clients.ts';
import { assertLinearizable } from '../../support/ledger/linearize.ts';
import { Model } from '../../support/ledger/model.ts';
import { answerOf, Recorder } from '../../support/ledger/observe.ts';
import { openLedger, type TestLedger } from '../../support/ledger/open-ledger.ts';
import { draws, scriptOf } from '../../support/ledger/script.ts';

/** 5,000 operations one after the other, 6,000 at the same time. */
const SEQUENTIAL = { runs: 50, operations: 100 };
const CONCURRENT = { runs: 30, operations: 200 };
const CLIENTS = 8;

describe('the ledger and its model', function () {
  this.timeout(180_000);
  let ledger: TestLedger;

  before(async () => {
    ledger = await openLedger({ poolSize: CLIENTS });
  });

  after(() => ledger.close());

  it('agree on every answer when operations come one after the other, alone or many in a call', async () => {
    const property = fc.asyncProperty(
      draws(SEQUENTIAL.operations),
      fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 10 }),
      async (drawn, callSizes) => {
        const { operations } = scriptOf(drawn);
        const model = new Model();
        for (let from = 0, call = 0; from < operations.length; call++) {
          const size = callSizes[call % callSizes.length] ?? 1;
          const batch = operations.slice(from, from + size);
          const answers = await applyOperations(ledger.em, batch.map(encodeOperation));
          for (const [index, operation] of batch.entries()) {
            const expected = model.decide(operation);
            expected.commit();
            assert.deepEqual(answers.map(answerOf)[index], expected.answer, JSON.stringify(operation));
          }
          from += size;
        }
        assert.deepEqual(await checkLedger(ledger.em), []);
      },
    );
    await fc.assert(property, { numRuns: SEQUENTIAL.runs, endOnFailure: true });
  });

  it('agree on some order when clients work at the same time, in every kind of call', async () => {
    const clients = createClients(ledger.orm);
    const property = fc.asyncProperty(
      draws(CONCURRENT.operations),
      fc.array(fc.constantFrom(...WAYS), { minLength: 5, maxLength: 20 }),
      async (drawn, ways) => {
        const recorder = new Recorder();
        const { openings, operations } = scriptOf(drawn);
        await clients.work(openings, ['alone'], recorder);
        await Promise.all(Array.from({ length: CLIENTS }, () => clients.work(operations, ways, recorder)));
        await assertLinearizable(ledger.owner, recorder.observations);
        assert.deepEqual(await checkLedger(ledger.em), []);
      },
    );
    await fc.assert(property, { numRuns: CONCURRENT.runs, endOnFailure: true });
  });
});
