import assert from 'node:assert/strict';
import { issueCardWorkflowId } from '../../../workflows/messages.ts';
import { createCard } from '../../support/cards.ts';
import { fundedPartner } from '../../support/money.ts';
import { startTestStack, type TestStack } from '../../support/stack.ts';
import { until } from '../../support/until.ts';

describe('the log', () => {
  for (const hosted of [true, false]) {
    const where = hosted ? 'the API’s own worker' : 'a worker process';
    describe(`of a live card whose first attempts fail in ${where}`, () => {
      let stack: TestStack;
      before(async () => {
        stack = await startTestStack({ cardCreationWaitMs: 60_000 }, { hosted });
      });
      after(() => stack.stop());

      it('names the request and the workflow in every line about them', async () => {
        const partner = await fundedPartner(stack, 100_000);
        // The network answers 503 three times.
        const { headers, json } = await createCard(partner, { amount: 10_048 }, { mode: 'live' });
        const requestId = headers.get('request-id') ?? '';
        const workflowId = issueCardWorkflowId(json.id);
        const lines = () => stack.logLines.map((line) => JSON.parse(line));
        await until('the request is logged', () =>
          lines().some((line) => line.msg === 'request' && line.requestId === requestId),
        );
        const found = lines().filter((line) => line.requestId === requestId);
        assert.deepEqual(
          found.map(({ msg }) => msg),
          [...Array(3).fill('an activity failed and will be retried'), 'request'],
        );
        for (const line of found) assert.equal(line.workflowId, workflowId);
        // And no line about the workflow is without the request.
        const about = stack.logLines.filter((line) => line.includes(json.id) || line.includes(workflowId));
        assert.deepEqual(
          about.filter((line) => !line.includes(requestId)),
          [],
        );
      });
    });
  }
});
