import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { expectError, expectReplay } from '../support/api/answers.ts';
import {
  ask,
  assertMoney,
  assertNothing,
  assertOneEvent,
  assertShown,
  eventsAbout,
  ISSUANCE,
  listed,
  OPERATION_KINDS,
  type Operating,
  operating,
  settled,
} from '../support/operation-kinds.ts';
import { startTestStack, type TestStack } from '../support/stack.ts';
import { untilStarted } from '../support/workflows.ts';

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

  it('live mode keeps the card pending, with its money held, if its workflow is terminated', async () => {
    const on = await operating(stack, ISSUANCE, 'live');
    const idempotencyKey = randomUUID();
    const accepted = await ask(on, 1_000, { idempotencyKey });
    assert.equal(accepted.status, 202, accepted.text);
    const workflow = stack.client.workflow.getHandle(ISSUANCE.workflow.idOf(accepted.json.id));
    await untilStarted(workflow);
    await workflow.terminate('by an operator, in a test');
    await stack.startWorker();
    expectReplay(await ask(on, 1_000, { idempotencyKey }), accepted);
    assert.deepEqual(await listed(on), [accepted.json]);
    await assertMoney(on, 'pending', 1_000);
    await stack.stopWorker();
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
