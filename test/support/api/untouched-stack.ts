import assert from 'node:assert/strict';
import { startTestStack, type TestPartner, type TestStack } from '../stack.ts';
import { tableContents } from '../stored-data.ts';

interface UntouchedStack {
  stack: TestStack;
  partner: TestPartner;
}

/** For a `describe` of refused requests: a stack without a worker, whose tables must be the same after every test. */
export function untouchedStack(): UntouchedStack {
  const running = {} as UntouchedStack;
  let untouched: Record<string, string[]>;
  /** Without the row in which the API says, from time to time, which accounts are active in it. */
  const contents = async () => {
    const { 'public.api_process': _, ...tables } = await tableContents(running.stack);
    return tables;
  };
  before(async () => {
    running.stack = await startTestStack({}, { worker: false });
    running.partner = await running.stack.createPartner();
    untouched = await contents();
  });
  afterEach(async () => {
    assert.deepEqual(await contents(), untouched);
  });
  after(() => running.stack.stop());
  return running;
}
