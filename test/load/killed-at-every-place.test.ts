import { batchesOf, killApiIn, killWorkerIn } from '../support/crash/kill-at-places.ts';
import { apiPlaces, workerPlaces } from '../support/crash/places.ts';

describe('every outcome of issuances, top-ups, withdrawals and status changes, at every place,', () => {
  batchesOf(workerPlaces({ everyCase: true })).forEach((batch, index, { length }) => {
    it(`ends as if nothing had happened when the worker is killed -9: ${batch.length} operations, ${index + 1} of ${length}`, () =>
      killWorkerIn(batch));
  });

  batchesOf(apiPlaces({ everyCase: true })).forEach((batch, index, { length }) => {
    it(`ends as if nothing had happened when the API that runs the first task is killed -9: ${batch.length} operations, ${index + 1} of ${length}`, () =>
      killApiIn(batch));
  });
});
