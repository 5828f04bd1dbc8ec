import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { WorkflowHandle } from '@temporalio/client';
import { type ClaimRequest, claimIdempotencyKey } from '../../../commands/idempotency/claim.ts';
import { newId } from '../../../crypto/new-id.ts';
import { query } from '../../../db/sql.ts';
import { changeCardStatusWorkflowId } from '../../../workflows/messages.ts';
import { expectError } from '../../support/api/answers.ts';
import {
  cardIn,
  changeStatus,
  claimUnderWay,
  networkStatus,
  statusClaims,
  untilChangesAnswered,
} from '../../support/card-status.ts';
import { eventTypes, readCardRow } from '../../support/cards.ts';
import { fundedPartner } from '../../support/money.ts';
import { type Answer, startTestStack, type TestPartner, type TestStack } from '../../support/stack.ts';
import { startUnrulyStack, type UnrulyNetwork, unavailable } from '../../support/unruly-network.ts';
import { until } from '../../support/until.ts';

describe('an interrupted status change', function () {
  this.timeout(180_000);
  let stack: TestStack;
  let partner: TestPartner;
  let network: UnrulyNetwork;
  before(async () => {
    ({ stack, network } = await startUnrulyStack(500));
    partner = await fundedPartner(stack);
  });
  beforeEach(() => {
    network.usual = (ask) => ask();
  });
  after(() => stack.stop());

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

  it('is carried out by the sweep if its process died before it started anything', async () => {
    const cardId = await cardIn(stack, partner, 'live', 'active');
    await claimIdempotencyKey({ orm: stack.orm, ring: stack.operator.ring }, abandoned(cardId));
    const [claim] = await untilChangesAnswered(stack, cardId);
    assert.equal(claim?.response_status, 200);
    assert.deepEqual(await eventTypes(stack, cardId), ['card.issued', 'card.frozen']);
    assert.equal((await readCardRow(stack, cardId))?.status, 'frozen');
  });

  const abandoned = (cardId: string): ClaimRequest<'freeze_card'> => ({
    claimId: newId('claim'),
    partnerId: partner.id,
    mode: 'live',
    key: null,
    operation: 'freeze_card',
    resourceId: null,
    cardId,
    fingerprint: Buffer.from('freeze'),
    sealedRequest: null,
    requestId: newId('req'),
    apiKeyId: null,
    clientAddress: null,
    leaseMs: 0,
  });

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
    assert.deepEqual(await eventTypes(stack, cardId), ['card.issued', 'card.frozen', 'card.unfrozen']);
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
    assert.deepEqual(await eventTypes(stack, cardId), ['card.issued', 'card.frozen']);
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

describe('a status change while no worker runs', () => {
  let stack: TestStack;
  let partner: TestPartner;
  before(async () => {
    stack = await startTestStack({ cardCreationWaitMs: 500 }, { hosted: false });
    partner = await fundedPartner(stack);
  });
  after(() => stack.stop());

  it('is made by the API in test mode, and answers 503 in live mode until a worker completes it', async () => {
    const cards = {
      test: await cardIn(stack, partner, 'test', 'active'),
      live: await cardIn(stack, partner, 'live', 'active'),
    };
    await stack.stopWorker();
    const made = await changeStatus(partner, cards.test, 'freeze');
    assert.deepEqual([made.status, made.json.status], [200, 'frozen']);
    const key = randomUUID();
    const freeze = () => changeStatus(partner, cards.live, 'freeze', { mode: 'live', idempotencyKey: key });
    expectError(await freeze(), 'unavailable');
    expectError(await changeStatus(partner, cards.live, 'unfreeze', { mode: 'live' }), 'unavailable');

    await stack.startWorker();
    const claims = await untilChangesAnswered(stack, cards.live);
    assert.equal(claims[0]?.response_status, 200);
    const answer = await freeze();
    assert.deepEqual([answer.status, answer.json.status], [200, 'frozen']);
    assert.deepEqual(await eventTypes(stack, cards.test), ['card.issued', 'card.frozen']);
  });
});

describe('a live status change after CARD_NETWORK has become none', () => {
  it('waits, where operators see it, until there is a network again', async () => {
    const first = await startTestStack();
    const partner = await fundedPartner(first);
    const cardId = await cardIn(first, partner, 'live', 'active');
    await first.stopWorker();
    const { databaseUrl, encryptionKeys, taskQueuePrefix } = first.config;
    const same = { databaseUrl, encryptionKeys, taskQueuePrefix };
    const without = await startTestStack(
      { ...same, cardNetwork: 'none', cardCreationWaitMs: 500 },
      { product: false },
    );
    const key = randomUUID();
    try {
      const answer = await fetch(
        `http://${without.config.host}:${without.config.port}/v1/cards/${cardId}/freeze`,
        {
          method: 'POST',
          headers: { authorization: `Bearer ${partner.keys.live}`, 'idempotency-key': key },
        },
      );
      assert.equal(answer.status, 503);
      await until('it is logged', async () =>
        without.logLines.some((line) => line.includes('CARD_NETWORK is none: configure the network again')),
      );
    } finally {
      await without.stop();
    }
    await first.startWorker();
    await until('it is frozen', async () => (await readCardRow(first, cardId))?.status === 'frozen');
    assert.equal(await networkStatus(first, cardId), 'frozen');
    await first.stop();
  });
});
