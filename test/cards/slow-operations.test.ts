import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { expectError, expectReplay } from '../support/api/answers.ts';
import {
  ask,
  assertNothing,
  assertOneEvent,
  assertShown,
  eventsAbout,
  OPERATION_KINDS,
  type Operating,
  operating,
  settled,
} from '../support/operation-kinds.ts';
import { startTestStack, type TestStack } from '../support/stack.ts';

describe('if no worker gets to an operation in time', () => {
  let stack: TestStack;
  let live: Operating[];
  before(async () => {
    stack = await startTestStack({ cardCreationWaitMs: 200 }, { hosted: false });
    live = await Promise.all(OPERATION_KINDS.map((kind) => operating(stack, kind, 'live')));
    await stack.stopWorker();
  });
  after(() => stack.stop());

  it('live mode still refuses what the money is missing for', async () => {
    for (const on of live) {
      expectError(await ask(on, 100_000), on.kind.short);
      await assertNothing(on);
    }
  });

  it('live mode answers 202 with the money held, also to a retry, and it succeeds when a worker starts', async () => {
    const idempotencyKey = randomUUID();
    const accepted = [];
    for (const on of live) {
      const answer = await ask(on, 1_000, { idempotencyKey });
      assert.equal(answer.status, 202, answer.text);
      await assertShown(on, answer.json, 1_000, 'pending');
      assert.deepEqual(await eventsAbout(on), []);
      expectReplay(await ask(on, 1_000, { idempotencyKey }), answer);
      accepted.push({ on, answer });
    }
    await stack.startWorker();
    for (const { on, answer } of accepted) {
      const now = await settled(on, answer.json.id);
      await assertShown(on, now, 1_000, 'succeeded');
      await assertOneEvent(on, now, 'succeeded');
      expectReplay(await ask(on, 1_000, { idempotencyKey }), answer);
    }
  });
});
