import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { WorkflowHandle } from '@temporalio/client';
import { askForStatusChange } from '../../cards/change-status-operator.ts';
import { query } from '../../platform/db/sql.ts';
import { changeCardStatusWorkflowId } from '../../workflows/messages.ts';
import { expectError } from '../support/api/answers.ts';
import { networkIdOf } from '../support/api/network-events.ts';
import {
  cardIn,
  changeStatus,
  claimUnderWay,
  networkStatus,
  statusClaims,
  untilChangesAnswered,
  VERBS,
} from '../support/card-status.ts';
import { eventTypes, readCardRow } from '../support/cards.ts';
import { fundedPartner } from '../support/money.ts';
import { environmentOf, operateIn } from '../support/operator/operate.ts';
import { asOwner } from '../support/postgres.ts';
import { type Answer, startTestStack, type TestPartner, type TestStack } from '../support/stack.ts';
import { startUnrulyStack, type UnrulyNetwork, unavailable } from '../support/unruly-network.ts';
import { until } from '../support/until.ts';
import { detailsOf, skipTime } from '../support/workflows.ts';

const FROZEN = ['card.issued', 'card.frozen'];
const MINUTE_MS = 60_000;

describe('a change of a card’s status that is still pending when its request is answered', () => {
  let stack: TestStack;
  let partner: TestPartner;
  let network: UnrulyNetwork;
  before(async () => {
    ({ stack, network } = await startUnrulyStack(500));
  });
  beforeEach(async () => {
    network.usual = (ask) => ask();
    partner = await fundedPartner(stack);
  });
  after(() => stack.stop());

  it('is answered 503, continues, and is found by a retry with the same key', async () => {
    const cardId = await cardIn(stack, partner, 'live', 'active');
    network.usual = unavailable;
    const options = { mode: 'live', idempotencyKey: randomUUID() } as const;
    for (let attempt = 0; attempt < 2; attempt++) {
      const pending = await changeStatus(partner, cardId, 'freeze', options);
      expectError(pending, 'unavailable');
      assert.match(
        pending.json.error.message,
        /we are still waiting for it\. To learn the outcome, read the card, /,
      );
    }
    assert.equal((await readCardRow(stack, cardId))?.status, 'active');
    network.usual = (ask) => ask();
    await until('it is frozen', async () => (await readCardRow(stack, cardId))?.status === 'frozen');

    const answer = await changeStatus(partner, cardId, 'freeze', options);
    assert.deepEqual([answer.status, answer.json.status], [200, 'frozen']);
    assert.equal((await statusClaims(stack, cardId)).length, 1);
    assert.deepEqual(await eventTypes(stack, cardId), FROZEN);
  });

  describe('an interrupted status change', () => {
    const workflowOf = (cardId: string, claimId: string): WorkflowHandle =>
      stack.client.workflow.getHandle(changeCardStatusWorkflowId(cardId, claimId));

    /** A freeze that the network does not answer, and its workflow. */
    async function pendingFreeze(): Promise<{ cardId: string; claimId: string; key: string }> {
      const cardId = await cardIn(stack, partner, 'live', 'active');
      network.usual = unavailable;
      const key = randomUUID();
      expectError(
        await changeStatus(partner, cardId, 'freeze', { mode: 'live', idempotencyKey: key }),
        'unavailable',
      );
      const claimId = (await until('it is under way', () => claimUnderWay(stack, cardId))) as string;
      return { cardId, claimId, key };
    }

    it('starts again if its workflow is terminated, and the next change then gets its turn', async () => {
      const { cardId, claimId } = await pendingFreeze();
      await workflowOf(cardId, claimId).terminate('by an operator, in a test');
      const next = await changeStatus(partner, cardId, 'unfreeze', { mode: 'live' });
      expectError(next, 'unavailable');
      // The sweep looks once a minute after one that it has seen.
      await query(stack.orm.em.fork(), 'UPDATE idempotency_claim SET sweep_after = now() WHERE id = $1', [
        claimId,
      ]);
      const isRunning = async () => (await workflowOf(cardId, claimId).describe()).status.name === 'RUNNING';
      await until('it is started again', isRunning);
      network.usual = (ask) => ask();

      const claims = await untilChangesAnswered(stack, cardId);
      assert.deepEqual(
        claims.map(({ operation, response_status }) => [operation, response_status]),
        [
          ['freeze_card', 200],
          ['unfreeze_card', 200],
        ],
      );
      assert.deepEqual(await eventTypes(stack, cardId), [...FROZEN, 'card.unfrozen']);
      assert.equal(await networkStatus(stack, cardId), 'active');
      assert.equal(await claimUnderWay(stack, cardId), null);
      await workflowOf(cardId, claimId).result();
    });

    it('gives its outcome to a retry with the same key after its workflow was terminated', async () => {
      const { cardId, claimId, key } = await pendingFreeze();
      await workflowOf(cardId, claimId).terminate('by an operator, in a test');
      network.usual = (ask) => ask();
      const retry = () => changeStatus(partner, cardId, 'freeze', { mode: 'live', idempotencyKey: key });
      const answer = await until<Answer>('it is answered', async () => {
        const retried = await retry();
        return retried.status === 200 && retried;
      });
      assert.equal(answer.json.status, 'frozen');
      assert.deepEqual(await eventTypes(stack, cardId), FROZEN);
    });

    it('continues if its workflow is asked to cancel', async () => {
      const { cardId, claimId } = await pendingFreeze();
      await workflowOf(cardId, claimId).cancel();
      network.usual = (ask) => ask();
      const [claim] = await untilChangesAnswered(stack, cardId);
      assert.equal(claim?.response_status, 200);
      assert.equal((await readCardRow(stack, cardId))?.status, 'frozen');
      await workflowOf(cardId, claimId).result();
    });

    it('continues if its workflow is asked to cancel while it waits for its turn', async () => {
      const { cardId } = await pendingFreeze();
      expectError(await changeStatus(partner, cardId, 'block', { mode: 'live' }), 'unavailable');
      const [, block] = await statusClaims(stack, cardId);
      await workflowOf(cardId, block?.id ?? '').cancel();
      network.usual = (ask) => ask();
      const claims = await untilChangesAnswered(stack, cardId);
      assert.deepEqual(
        claims.map(({ response_status }) => response_status),
        [200, 200],
      );
      assert.equal(await networkStatus(stack, cardId), 'blocked');
    });
  });

  it('waits after CARD_NETWORK has become none, where operators see it, until there is a network again', async () => {
    const cardId = await cardIn(stack, partner, 'live', 'active');
    network.usual = unavailable;
    const first = { mode: 'live', idempotencyKey: randomUUID() } as const;
    expectError(await changeStatus(partner, cardId, 'freeze', first), 'unavailable');
    await stack.stopWorker();
    const { databaseUrl, encryptionKeys, taskQueuePrefix } = stack.config;
    const same = { databaseUrl, encryptionKeys, taskQueuePrefix };
    const without = await startTestStack(
      { ...same, cardNetwork: 'none', cardCreationWaitMs: 500 },
      { product: false },
    );
    try {
      const here = without.partnerHere(partner);
      for (const verb of VERBS) {
        const refused = await changeStatus(here, cardId, verb, { mode: 'live', idempotencyKey: verb });
        expectError(refused, 'unavailable');
        assert.match(refused.json.error.message, /^No card network is configured/);
      }
      assert.equal((await statusClaims(stack, cardId)).length, 1);
      const again = await changeStatus(here, cardId, 'freeze', first);
      expectError(again, 'unavailable');
      assert.match(again.json.error.message, /we are still waiting for it/);
      await until('it is logged', async () =>
        without.logLines.some((line) => line.includes('CARD_NETWORK is none: configure the network again')),
      );
    } finally {
      await without.stop();
    }
    network.usual = (ask) => ask();
    await stack.startWorker(network.options);
    await until('it is frozen', async () => (await readCardRow(stack, cardId))?.status === 'frozen');
    assert.equal(await networkStatus(stack, cardId), 'frozen');
    assert.equal((await changeStatus(partner, cardId, 'freeze', first)).status, 200);
  });

  it('can be found by NeedsAttention after 10 minutes until it is done, as can one that waits for it', async () => {
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
    assert.match(behind, /^Another change of the same card comes first\./);
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

  it('goes on after an operator’s command that sees no end, after the change that came first, and is listed after ten minutes', async () => {
    const operate = operateIn(environmentOf(stack.config), 0);
    const itemOf = async (id: string) =>
      (await operate('attention', 'list')).json.find((item: { id: string }) => item.id === id);
    const cardId = await cardIn(stack, partner, 'live', 'active');
    network.usual = unavailable;
    const asked = { cardId, operation: 'freeze_card', reason: 'r' } as const;
    const { claimId: freeze } = await askForStatusChange(stack.operator, asked);
    await until('the freeze is under way', async () => (await claimUnderWay(stack, cardId)) === freeze);
    const { code, out, err } = await operate('card', 'block', cardId, '--reason', 'r');
    assert.deepEqual([code, out], [1, '']);
    assert.match(err, /recorded and goes on by itself, but card_\w+ is not blocked yet: another change of/);
    const { json: shown } = await operate('card', 'show', cardId);
    const workflowId = changeCardStatusWorkflowId(cardId, freeze);
    assert.deepEqual(
      [shown.status, shown.status_change.operation, shown.status_change.workflow_id],
      ['active', 'freeze_card', workflowId],
    );
    assert.equal(await itemOf(cardId), undefined);
    const [aged] = await asOwner<{ since: Date }>(
      stack,
      `UPDATE idempotency_claim SET created_at = created_at - interval '11 minutes' WHERE id = $1
       RETURNING created_at + interval '10 minutes' AS since`,
      [freeze],
    );
    assert.deepEqual(await itemOf(cardId), {
      kind: 'card_status_change',
      id: cardId,
      since: aged?.since.toISOString(),
      mode: 'live',
      reason:
        'the network has not confirmed that the card is frozen: check that it can be reached. ' +
        'When it was last asked: card network: it answered 503, in a test',
      at_issuer: `at the issuer: token ${freeze}, card ${await networkIdOf(stack, cardId)}`,
      partner_id: partner.id,
      partner_name: 'Test Partner',
      command: `npm run operator -- card show ${cardId}`,
      or_command: null,
      workflow_id: workflowId,
    });
    network.usual = (ask) => ask();
    await until('it is blocked', async () => (await readCardRow(stack, cardId))?.status === 'blocked');
    assert.deepEqual(await eventTypes(stack, cardId), [...FROZEN, 'card.blocked']);
    assert.equal(await networkStatus(stack, cardId), 'blocked');
    assert.equal(await itemOf(cardId), undefined);
    assert.equal((await operate('card', 'show', cardId)).json.status_change, null);
  });
});
