import assert from 'node:assert/strict';
import { issueCardWorkflowId } from '../../../workflows/messages.ts';
import { createCard } from '../../support/cards.ts';
import { fundedPartner } from '../../support/money.ts';
import { sharedStack } from '../../support/shared-stack.ts';
import { until } from '../../support/until.ts';

describe('the log of a live card whose first attempts fail', () => {
  it('names the request and the workflow in every line about them', async () => {
    const stack = await sharedStack();
    const partner = await fundedPartner(stack, 100_000);
    // The network answers 503 three times.
    const { headers, json } = await createCard(partner, { amount: 10_048 }, { mode: 'live' });
    const requestId = headers.get('request-id') ?? '';
    const workflowId = issueCardWorkflowId(json.id);
    const linesWith = (text: string) =>
      stack.logLines.filter((line) => line.includes(text)).map((line) => JSON.parse(line));
    await until('the request is logged', () => linesWith(requestId).some(({ msg }) => msg === 'request'));
    const found = linesWith(requestId);
    assert.deepEqual(
      found.map(({ msg }) => msg),
      [...Array(3).fill('an activity failed and will be retried'), 'request'],
    );
    for (const line of found) assert.equal(line.workflowId, workflowId);
    // And no line about the card is without the request.
    assert.deepEqual(linesWith(json.id), found);
  });
});
