import assert from 'node:assert/strict';
import fc from 'fast-check';
import { applyPostings } from '../../ledger/apply-posting.ts';
import { checkLedger } from '../../ledger/check-ledger.ts';
import { encodePosting } from '../../ledger/posting.ts';
import { createClients, WAYS } from '../support/ledger/clients.ts';
import { assertLinearizable } from '../support/ledger/linearize.ts';
import { Model } from '../support/ledger/model.ts';
import { answerOf, Recorder } from '../support/ledger/observe.ts';
import { openLedger, type TestLedger } from '../support/ledger/open-ledger.ts';
import { draws, scriptOf } from '../support/ledger/script.ts';
import { propertyRuns } from '../support/property-runs.ts';

const SEQUENTIAL = { runs: propertyRuns(5), operations: 100 };
const CONCURRENT = { runs: propertyRuns(3), operations: 200 };
const CLIENTS = 8;

describe('the ledger and its model', () => {
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
        const { postings } = scriptOf(drawn);
        const model = new Model();
        for (let from = 0, call = 0; from < postings.length; call++) {
          const size = callSizes[call % callSizes.length] ?? 1;
          const batch = postings.slice(from, from + size);
          const answers = await applyPostings(ledger.em, batch.map(encodePosting));
          for (const [index, posting] of batch.entries()) {
            const expected = model.decide(posting);
            expected.commit();
            assert.deepEqual(answers.map(answerOf)[index], expected.answer, JSON.stringify(posting));
          }
          from += size;
        }
        assert.deepEqual(await checkLedger(ledger.em), []);
      },
    );
    await fc.assert(property, { numRuns: SEQUENTIAL.runs });
  });

  it('agree on some order when clients work at the same time, in every kind of call', async () => {
    const clients = createClients(ledger.orm);
    const property = fc.asyncProperty(
      draws(CONCURRENT.operations),
      fc.array(fc.constantFrom(...WAYS), { minLength: 5, maxLength: 20 }),
      async (drawn, ways) => {
        const recorder = new Recorder();
        const { openings, postings } = scriptOf(drawn);
        await clients.work(openings, ['alone'], recorder);
        await Promise.all(Array.from({ length: CLIENTS }, () => clients.work(postings, ways, recorder)));
        await assertLinearizable(ledger.owner, recorder.observations);
        assert.deepEqual(await checkLedger(ledger.em), []);
      },
    );
    await fc.assert(property, { numRuns: CONCURRENT.runs });
  });
});
