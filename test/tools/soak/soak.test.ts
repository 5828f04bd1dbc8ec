import assert from 'node:assert/strict';
import { Difference } from '../../model/difference.ts';
import { newTally } from '../../model/tally.ts';
import { drawKills, VICTIMS } from '../../soak/draw-kills.ts';
import { describeReport, makeReport } from '../../soak/report.ts';

describe('the kills of a soak', () => {
  it('are the same for the same seed, and different for another', () => {
    assert.deepEqual(drawKills(7, 40), drawKills(7, 40));
    assert.notDeepEqual(drawKills(7, 40), drawKills(8, 40));
  });

  it('hit each of the four processes once in every four', () => {
    const drawn = drawKills(7, 40).map(({ victim }) => victim);
    assert.equal(drawn.length, 40);
    for (let at = 0; at < drawn.length; at += 4) {
      assert.deepEqual(drawn.slice(at, at + 4).sort(), [...VICTIMS].sort());
    }
  });
});

describe('the report of a soak', () => {
  const tally = newTally();
  tally.asked
    .set('live issue 201', 2)
    .set('live issue 402 insufficient_funds', 1)
    .set('test purchase 201', 4);
  const run = {
    ...{ seed: 7, startedAt: Date.now(), tally, answers: new Map([['201', 6]]) },
    webhooks: { events: 6, requests: 7 },
    kills: [900, 500, 700, undefined].map((recoveredAfterMs) => ({
      ...{ victim: 'worker' as const, recoveredAfterMs },
    })),
  };

  it('counts operations by kind, and says how long each process took to recover', () => {
    const { operations, kills } = makeReport({ ...run, differences: [] });
    assert.deepEqual(operations, { total: 7, byKind: { 'live issue': 3, 'test purchase': 4 } });
    assert.deepEqual(kills.worker, { kills: 4, medianRecoveryMs: 700, longestRecoveryMs: 900 });
    assert.deepEqual(kills.API, { kills: 0, medianRecoveryMs: null, longestRecoveryMs: null });
  });

  it('names each difference with its ids', () => {
    const report = makeReport({
      ...run,
      differences: [new Difference('money is held for', ['prepaid/live/prt_1'])],
    });
    assert.deepEqual(report.differences, [{ what: 'money is held for', details: ['prepaid/live/prt_1'] }]);
    assert.match(describeReport(report), /differences: 1\n {2}money is held for\n {4}prepaid\/live\/prt_1$/);
  });
});
