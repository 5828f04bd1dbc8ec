import { batchesOf, killApiIn, killWorkerIn } from '../support/crash/kill-at-places.ts';
import { apiPlaces, workerPlaces } from '../support/crash/places.ts';

describe('issuances, top-ups, withdrawals and status changes, each at a place of its own,', () => {
  batchesOf(workerPlaces({ everyCase: false })).forEach((batch, index, { length }) => {
    it(`end as if nothing had happened when their worker is killed -9: ${batch.length} of them, ${index + 1} of ${length}`, () =>
      killWorkerIn(batch));
  });

  batchesOf(apiPlaces({ everyCase: false })).forEach((batch, index, { length }) => {
    it(`end as if nothing had happened when the API that runs their first task is killed -9: ${batch.length} of them, ${index + 1} of ${length}`, () =>
      killApiIn(batch));
  });
});
