import assert from 'node:assert/strict';
import { startTestStack, type TestPartner, type TestStack } from '../stack.ts';
import { lastingContents } from '../stored-data.ts';

interface UntouchedStack {
  stack: TestStack;
  partner: TestPartner;
}

/** For a `describe` of refused requests: a stack without a worker, whose tables must be the same after every test. */
export function untouchedStack(): UntouchedStack {
  const running = {} as UntouchedStack;
  let untouched: Record<string, string[]>;
  before(async () => {
    running.stack = await startTestStack({}, { worker: false });
    running.partner = await running.stack.createPartner();
    untouched = await lastingContents(running.stack);
  });
  afterEach(async () => {
    assert.deepEqual(await lastingContents(running.stack), untouched);
  });
  after(() => running.stack.stop());
  return running;
}
