import assert from 'node:assert/strict';
import { play } from './play.ts';
import { drawScript, startSeed } from './seed.ts';
import { type RunningService, startService } from './start-service.ts';
import { describeTally, newTally, operationsOf } from './tally.ts';

const SCRIPTS = 3;
const SIZE = { rounds: 6, lanes: 28, depositLanes: 7 };
const LEAST_OPERATIONS = 2_000;

/** Hard cases that the scripts should produce dozens of times. */
const HARD_ONES = [
  ...['test issue 422 limit_exceeded', 'test top_up 402 insufficient_funds', 'test top_up 409 invalid_state'],
  ...[
    'test card.transaction.created decline insufficient_card_balance',
    'test asked again 201',
    'live issue 202',
  ],
  ...[
    'live card.transaction.created purchase partner_balance',
    'live card.transaction.created decline card_blocked',
  ],
  'test card.authorization.created pending',
  'test card.authorization.created spending_limit_exceeded',
  'test card.authorization.created insufficient_card_balance',
  'test card.authorization.updated pending',
  'test card.authorization.updated expired',
  'test card.transaction.created purchase both',
  'test withdraw 402 insufficient_card_balance',
  ...['test increment 200', 'test reverse 200', 'test lapse 200', 'live increment 200'],
  'live card.authorization.created pending',
  'live card.authorization.updated closed',
  'live withdrawal.succeeded',
  ...['live deposit.confirmed', 'live deposit is expired', 'live deposit is needs_review'],
  ...[
    'live deposit credited: done',
    'live deposit returned: done',
    'live deposit credited: nothing_in_review',
  ],
];

describe('the service and its model', function () {
  this.timeout(600_000);
  let service: RunningService;

  before(async () => {
    service = await startService();
  });

  after(() => service.stop());

  it(`agree after every round of ${LEAST_OPERATIONS} random operations, although a worker is killed -9 in each script`, async () => {
    const tally = newTally();
    const first = startSeed();
    for (let seed = first; seed < first + SCRIPTS; seed++) {
      const kills = (round: number) => round === seed % SIZE.rounds;
      await play(service, drawScript(seed, SIZE), tally, { kills });
    }
    assert.ok(operationsOf(tally) >= LEAST_OPERATIONS, describeTally(tally));
    for (const what of HARD_ONES) {
      assert.ok(tally.asked.has(what) || tally.seen.has(what), `never: ${what}\n${describeTally(tally)}`);
    }
  });
});
