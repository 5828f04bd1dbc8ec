import assert from 'node:assert/strict';
import { changeCardStatusWorkflowId } from '../../../workflows/messages.ts';
import { expectError } from '../../support/api/answers.ts';
import { cardIn, changeStatus, statusClaims } from '../../support/card-status.ts';
import { fundedPartner } from '../../support/money.ts';
import type { TestPartner, TestStack } from '../../support/stack.ts';
import { startUnrulyStack, type UnrulyNetwork, unavailable } from '../../support/unruly-network.ts';
import { until } from '../../support/until.ts';
import { detailsOf, skipTime } from '../../support/workflows.ts';

const MINUTE_MS = 60_000;

/** The network stays silent; a workflow's own time is skipped on the real server. */
describe('a status change that takes longer than 10 minutes', function () {
  this.timeout(180_000);
  let stack: TestStack;
  let partner: TestPartner;
  let network: UnrulyNetwork;
  before(async () => {
    ({ stack, network } = await startUnrulyStack(500));
    partner = await fundedPartner(stack);
  });
  after(() => stack.stop());

  it('can be found by NeedsAttention until it is done, as can one that waits for it', async () => {
    const cardId = await cardIn(stack, partner, 'live', 'active');
    network.usual = unavailable;
    for (const verb of ['freeze', 'block'] as const) {
      expectError(await changeStatus(partner, cardId, verb, { mode: 'live' }), 'unavailable');
    }
    const workflows = (await statusClaims(stack, cardId)).map(({ id }) =>
      stack.client.workflow.getHandle(changeCardStatusWorkflowId(cardId, id)),
    );
    const found = async () => {
      const ids: string[] = [];
      const query = `NeedsAttention = true AND CardId = '${cardId}'`;
      for await (const { workflowId } of stack.client.workflow.list({ query })) ids.push(workflowId);
      return ids.sort();
    };
    const details = () => Promise.all(workflows.map(detailsOf));

    await Promise.all(workflows.map((workflow) => skipTime(workflow, 9 * MINUTE_MS)));
    assert.deepEqual(await found(), []);
    const tried =
      /Tried \d+ times, next at 20\S+Z\. Somebody should look at it if this lasts until 20\S+Z\.$/;
    const [waiting = '', behind = ''] = await details();
    assert.match(waiting, /^The card network has not confirmed the change\./);
    assert.match(behind, /^Another change of the same card is in progress at the card network\./);
    for (const said of [waiting, behind]) assert.match(said, tried);
    // From then on the network is asked without a timer of the workflow's own, and no time is skipped.
    const skipped = workflows.map((workflow) => skipTime(workflow, 2 * MINUTE_MS));
    await until('both can be found', async () => (await found()).length === 2);
    assert.deepEqual(await found(), workflows.map(({ workflowId }) => workflowId).sort());
    const [freeze, block] = await details();
    assert.match(freeze ?? '', /network has not confirmed/);
    assert.match(block ?? '', /Waiting for another change of the same card/);

    network.usual = (ask) => ask();
    const ends = await Promise.all(workflows.map((workflow) => workflow.result()));
    assert.deepEqual(ends, [{ outcome: 'applied' }, { outcome: 'applied' }]);
    await Promise.all(skipped);
    await until('neither is found any more', async () => (await found()).length === 0);
    assert.deepEqual(await details(), ['Over: applied.', 'Over: applied.']);
  });
});
