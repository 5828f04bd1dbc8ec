import assert from 'node:assert/strict';
import { askForStatusChange } from '../../cards/change-status-operator.ts';
import { freePort } from '../../dev/free-port.ts';
import type { Mode } from '../../domain/mode.ts';
import { newId } from '../../platform/crypto/new-id.ts';
import { query } from '../../platform/db/sql.ts';
import {
  cardIn,
  changeStatus,
  networkStatus,
  openCards,
  statusClaims,
  VERBS,
} from '../support/card-status.ts';
import { createCard, eventTypes, readCardRow } from '../support/cards.ts';
import { assertLedgerClean, fundedPartner } from '../support/money.ts';
import { assertAudited } from '../support/operator/audited.ts';
import { environmentOf, type Operate, operateIn } from '../support/operator/operate.ts';
import { asOwner } from '../support/postgres.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';

const REASON = ['--reason', 'key leaked, ticket 4711'];
const MODES = ['test', 'live'] as const satisfies readonly Mode[];
const AFTER = { freeze: 'frozen', unfreeze: 'active', block: 'blocked' };

describe('operator card freeze, unfreeze and block', () => {
  let stack: TestStack;
  let operate: Operate;
  let partner: TestPartner;

  before(async () => {
    stack = await sharedStack();
    operate = operateIn(environmentOf(stack.config));
  });
  beforeEach(async () => {
    partner = await fundedPartner(stack);
  });

  const asked = async (requestId: string) =>
    (await operate('request', 'find', '--request-id', requestId)).json[0];

  for (const mode of MODES) {
    for (const verb of VERBS) {
      it(`${verb} a ${mode} card as the partner could, with its event and an audit entry`, async () => {
        const before = verb === 'unfreeze' ? 'frozen' : 'active';
        const cardId = await cardIn(stack, partner, mode, before);
        const { code, json, err } = await operate('card', verb, cardId, ...REASON);
        assert.deepEqual([code, err], [0, '']);
        assert.deepEqual([json.id, json.status, json.status_change], [cardId, AFTER[verb], null]);
        const { json: seen } = await partner.call('GET', `/cards/${cardId}`, { mode });
        assert.equal(seen.status, AFTER[verb]);
        const type = { freeze: 'card.frozen', unfreeze: 'card.unfrozen', block: 'card.blocked' }[verb];
        assert.equal((await eventTypes(stack, cardId)).at(-1), type);
        if (mode === 'live') assert.equal(await networkStatus(stack, cardId), AFTER[verb]);
        const detail = { partnerId: partner.id, mode, requestId: json.request_id, reason: REASON[1] };
        await assertAudited(operate, `card.${verb}`, cardId, detail);
        const request = await asked(json.request_id);
        const { operation, card_id, response_status, by_operator, idempotency_key, api_key_id } = request;
        assert.deepEqual(
          [operation, card_id, response_status, by_operator, idempotency_key, api_key_id],
          [`${verb}_card`, cardId, 200, true, null, null],
        );
      });
    }

    it(`refuses what a ${mode} card's status does not allow, says why, and changes nothing`, async () => {
      const cardId = await cardIn(stack, partner, mode, 'active');
      const unfreeze = await operate('card', 'unfreeze', cardId, ...REASON);
      assert.deepEqual([unfreeze.code, unfreeze.out], [1, '']);
      assert.equal(
        unfreeze.err,
        `${cardId} was not unfrozen: The card is active. Only a card that is frozen can be unfrozen. See "operator card show ${cardId}".\n`,
      );
      await operate('card', 'block', cardId, ...REASON);
      const again = await operate('card', 'block', cardId, ...REASON);
      assert.equal(again.code, 1);
      assert.match(again.err, /was not blocked: The card is blocked\. Only a card that is active or frozen/);
      assert.deepEqual(await eventTypes(stack, cardId), ['card.issued', 'card.blocked']);
      const responses = (await statusClaims(stack, cardId)).map(({ response_status }) => response_status);
      assert.deepEqual(responses, [409, 200, 409]);
    });

    it(`and the partner's own request at the same moment change a ${mode} card once`, async () => {
      const cardId = await cardIn(stack, partner, mode, 'active');
      const [ours, theirs] = await Promise.all([
        operate('card', 'block', cardId, ...REASON),
        changeStatus(partner, cardId, 'block', { mode }),
      ]);
      assert.equal(Number(ours.code === 0) + Number(theirs.status === 200), 1, `${ours.err} ${theirs.text}`);
      assert.deepEqual(await eventTypes(stack, cardId), ['card.issued', 'card.blocked']);
      assert.equal(await openCards(stack, partner, mode), 0);
      await assertLedgerClean(stack, partner);
    });
  }

  it("works for a suspended partner's cards", async () => {
    const cardId = await cardIn(stack, partner, 'live', 'active');
    await operate('partner', 'suspend', partner.id, ...REASON);
    const { code, json, err } = await operate('card', 'block', cardId, ...REASON);
    assert.deepEqual([code, json?.status], [0, 'blocked'], err);
  });

  it('is done although the command dies once it has recorded the request', async () => {
    const cardId = await cardIn(stack, partner, 'live', 'active');
    await askForStatusChange(stack.operator, { cardId, operation: 'freeze_card', reason: 'r' });
    await until('it is frozen', async () => (await readCardRow(stack, cardId))?.status === 'frozen');
    assert.deepEqual(await eventTypes(stack, cardId), ['card.issued', 'card.frozen']);
  });

  it('works without Temporal and without ENCRYPTION_KEYS', async () => {
    const cardId = await cardIn(stack, partner, 'live', 'active');
    const { TEMPORAL_ADDRESS, ENCRYPTION_KEYS, ...bare } = environmentOf(stack.config);
    const frozen = await operateIn(bare)('card', 'freeze', cardId, ...REASON);
    assert.deepEqual([frozen.code, frozen.json?.status], [0, 'frozen'], frozen.err);
    const refusal = await operateIn(bare)('card', 'freeze', cardId, ...REASON);
    assert.deepEqual([refusal.code, refusal.out], [1, '']);
    assert.match(refusal.err, /was not frozen: it was refused \(set ENCRYPTION_KEYS to see why\)/);
  });

  it('refuse an unknown or hostile id, and say what to do', async () => {
    const cardId = await cardIn(stack, partner, 'test', 'active');
    for (const verb of VERBS) {
      for (const id of [newId('card'), 'card_', "x'; DROP TABLE card", 'é'.repeat(500)]) {
        const { code, out, err } = await operate('card', verb, id, ...REASON);
        assert.deepEqual([code, out], [1, ''], err);
        assert.match(err, /card list/);
      }
    }
    assert.deepEqual(await statusClaims(stack, cardId), []);
  });
});

describe('operator card block without a worker', () => {
  it('says what to check, and is in attention list with the same advice after ten minutes', async () => {
    const [stack, working] = await Promise.all([sharedStack('api'), sharedStack()]);
    const partner = await fundedPartner(stack);
    const { json } = await createCard(partner, { amount: 1_000 });
    const operateWith = (env: NodeJS.ProcessEnv) => operateIn({ ...environmentOf(stack.config), ...env }, 0);
    const answers = [
      [{}, 'check that a worker is running'],
      [
        { TASK_QUEUE_PREFIX: working.config.taskQueuePrefix },
        'a worker is running, so see its log for the reason',
      ],
      [
        { TEMPORAL_ADDRESS: `127.0.0.1:${await freePort()}` },
        'Temporal does not say whether a worker is running',
      ],
    ] as const;
    for (const [env, advice] of answers) {
      const { code, err } = await operateWith(env)('card', 'block', json.id, ...REASON);
      assert.equal(code, 1);
      assert.ok(err.includes(`is not blocked yet: ${advice}. Look again with`), err);
    }
    await asOwner(
      stack,
      `UPDATE idempotency_claim SET created_at = created_at - interval '11 minutes' WHERE card_id = $1`,
      [json.id],
    );
    for (const [env, advice] of answers) {
      const items = (await operateWith(env)('attention', 'list')).json;
      const { reason } = items.find(({ id }: { id: string }) => id === json.id);
      assert.equal(reason, `the request to have the card blocked has not started: ${advice}`);
    }
  });
});

describe('the database lets an operator claim', () => {
  let stack: TestStack;
  before(async () => {
    stack = await sharedStack('api');
  });

  const claim = (...values: string[]) =>
    query(stack.operator.orm.em.fork(), 'SELECT * FROM claim_status_change($1, $2, $3, $4)', values);

  it('a status change of a card that exists, and nothing else', async () => {
    const partner = await fundedPartner(stack);
    const cardId = await cardIn(stack, partner, 'test', 'active');
    const [id, request] = [newId('claim'), newId('req')];
    for (const operation of ['create_card', 'top_up_card', 'credit_faucet', 'create_deposit', '']) {
      await assert.rejects(claim(id, cardId, operation, request), { code: '23514' }, operation);
    }
    await assert.rejects(claim('claim_1', cardId, 'freeze_card', request), { code: '23514' });
    await assert.rejects(claim(id, cardId, 'freeze_card', 'someone'), { code: '23514' });
    assert.deepEqual(await claim(id, newId('card'), 'freeze_card', request), []);
    assert.deepEqual(await claim(id, cardId, 'freeze_card', request), [
      { partner_id: partner.id, mode: 'test' },
    ]);
    await assert.rejects(claim(id, cardId, 'block_card', request), { code: '23505' });
  });
});
