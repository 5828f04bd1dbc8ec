import assert from 'node:assert/strict';
import { play } from './play.ts';
import { drawScript } from './seed.ts';
import { type RunningService, startService } from './start-service.ts';
import { describeTally, newTally, operationsOf } from './tally.ts';

const SEED = 30;
const SIZE = { rounds: 2, lanes: 14, depositLanes: 3 };

/** Scripts of random seeds, and with kills, are in test/load/model.test.ts. */
describe('the service and its model', () => {
  let service: RunningService;
  before(async () => {
    service = await startService('here');
  });
  after(() => service.stop());

  it('agree after every round of operations that many clients make at once', async () => {
    const tally = newTally();
    await play(service, drawScript(SEED, SIZE), tally, { kills: () => false });
    assert.ok(operationsOf(tally) >= 100, describeTally(tally));
  });
});
