import assert from 'node:assert/strict';
import { freePort } from '../../../dev/free-port.ts';
import { expectError } from '../../support/api/answers.ts';
import { cardIn, changeStatus, type StatusClaim, statusClaims } from '../../support/card-status.ts';
import { readCardRow } from '../../support/cards.ts';
import { fundedPartner } from '../../support/money.ts';
import { environmentOf, type Operate, operateIn } from '../../support/operator/operate.ts';
import { asOwner } from '../../support/postgres.ts';
import { startTestStack, type TestPartner, type TestStack } from '../../support/stack.ts';
import { type UnrulyNetwork, unavailable, unrulyNetwork } from '../../support/unruly-network.ts';
import { until } from '../../support/until.ts';

describe('a waiting status change', () => {
  let stack: TestStack;
  let partner: TestPartner;
  let network: UnrulyNetwork;
  let operate: Operate;
  let cardId: string;
  before(async () => {
    network = unrulyNetwork();
    stack = await startTestStack({ cardCreationWaitMs: 500 }, { worker: false });
    operate = operateIn(environmentOf(stack.config));
    partner = await fundedPartner(stack);
  });
  beforeEach(async () => {
    await stack.startWorker(network.options);
    cardId = await cardIn(stack, partner, 'live', 'active');
    network.usual = unavailable;
  });
  afterEach(() => stack.stopWorker());
  after(() => stack.stop());

  const change = async (verb: 'freeze' | 'block'): Promise<StatusClaim> => {
    expectError(await changeStatus(partner, cardId, verb, { mode: 'live' }), 'unavailable');
    return (await statusClaims(stack, cardId)).at(-1) as StatusClaim;
  };
  const attention = async () =>
    (await operate('attention', 'list')).json.filter((item: { id: string }) => item.id === cardId);
  /** As if its request had come 11 minutes ago; returns since when it waits for a person. */
  const age = async (claim: StatusClaim): Promise<string> => {
    const [row] = await asOwner<{ since: Date }>(
      stack,
      `UPDATE idempotency_claim SET created_at = created_at - interval '11 minutes' WHERE id = $1
       RETURNING created_at + interval '10 minutes' AS since`,
      [claim.id],
    );
    return row?.since.toISOString() ?? '';
  };

  it('appears in card show with its workflow, and in attention list from 10 minutes on until it is done', async () => {
    const freeze = await change('freeze');
    const block = await change('block');
    const { json: shown } = await operate('card', 'show', cardId);
    assert.deepEqual([shown.status, shown.status_change.operation], ['active', 'freeze_card']);
    assert.equal(shown.status_change.workflow_id, `card-status/${cardId}/${freeze.id}`);
    assert.ok(Date.parse(shown.status_change.since) <= Date.now());
    assert.deepEqual(await attention(), []);

    await age(block);
    const since = await age(freeze);
    assert.deepEqual(await attention(), [
      {
        kind: 'card_status_change',
        id: cardId,
        since,
        reason: 'the network has not confirmed that the card is frozen: check that it can be reached',
        partner_id: shown.partner_id,
        partner_name: shown.partner_name,
        command: `npm run operator -- card show ${cardId}`,
        or_command: null,
        workflow_id: `card-status/${cardId}/${freeze.id}`,
      },
    ]);
    network.usual = (ask) => ask();
    await until('it is blocked', async () => (await readCardRow(stack, cardId))?.status === 'blocked');
    assert.deepEqual(await attention(), []);
    assert.equal((await operate('card', 'show', cardId)).json.status_change, null);
  });

  it('is listed with the advice to start a worker only if none is running', async () => {
    await stack.stopWorker();
    const claim = await change('freeze');
    await asOwner(stack, 'UPDATE card SET status_change_claim_id = NULL WHERE id = $1', [cardId]);
    await age(claim);
    const reasonIn = async (env: NodeJS.ProcessEnv) =>
      (await operateIn({ ...environmentOf(stack.config), ...env })('attention', 'list')).json[0].reason;
    const reason = 'the request to have the card frozen has not started';
    assert.equal(
      await reasonIn({ TASK_QUEUE_PREFIX: 'where-nobody-works-' }),
      `${reason}: check that a worker is running`,
    );
    // Temporal takes two minutes to forget the worker.
    assert.equal(await reasonIn({}), `${reason}: a worker is running, so see its log for the reason`);
    assert.equal(
      await reasonIn({ TEMPORAL_ADDRESS: `127.0.0.1:${await freePort()}` }),
      `${reason}: Temporal does not say whether a worker is running`,
    );
  });
});
