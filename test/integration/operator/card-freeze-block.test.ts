import assert from 'node:assert/strict';
import { askForStatusChange } from '../../../commands/card-status/ask-as-operator.ts';
import { newId } from '../../../crypto/new-id.ts';
import { query } from '../../../db/sql.ts';
import type { Mode } from '../../../domain/mode.ts';
import { cardIn, changeStatus, networkStatus, statusClaims, VERBS } from '../../support/card-status.ts';
import { eventTypes, forgetNetworkCard, readCardRow } from '../../support/cards.ts';
import { assertBalance, assertLedgerClean, fundedPartner, priceOf } from '../../support/money.ts';
import { ACTOR, environmentOf, lastAudit, type Operate, operateIn } from '../../support/operator/operate.ts';
import { sharedStack } from '../../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../../support/stack.ts';
import { refused, startUnrulyStack, type UnrulyNetwork, unavailable } from '../../support/unruly-network.ts';
import { until } from '../../support/until.ts';

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

  const openCards = async (mode: Mode) => {
    const [row] = await query<{ open_cards: number }>(
      stack.orm.em.fork(),
      'SELECT open_cards FROM account_usage WHERE partner_id = $1 AND mode = $2',
      [partner.id, mode],
    );
    return row?.open_cards;
  };
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
        assert.deepEqual(await lastAudit(operate), {
          actor: ACTOR,
          action: `card.${verb}`,
          subject: cardId,
          detail: { partnerId: partner.id, mode, requestId: json.request_id, reason: REASON[1] },
        });
        const request = await asked(json.request_id);
        const { operation, card_id, response_status, by_operator, idempotency_key, api_key_id } = request;
        assert.deepEqual(
          [operation, card_id, response_status, by_operator, idempotency_key, api_key_id],
          [`${verb}_card`, cardId, 200, true, null, null],
        );
      });
    }

    it(`returns a blocked ${mode} card's balance and no longer counts it as open`, async () => {
      const cardId = await cardIn(stack, partner, mode, 'active');
      assert.equal(await openCards(mode), 1);
      const { json } = await operate('card', 'block', cardId, ...REASON);
      assert.equal(json.balance, 0);
      assert.equal(await openCards(mode), 0);
      await assertBalance(stack, partner, mode, { spentCents: priceOf(10_000) - 10_000, heldCents: 0 });
      await assertLedgerClean(stack, partner);
    });

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
      assert.equal(await openCards(mode), 0);
      await assertLedgerClean(stack, partner);
    });

    it(`works for a suspended partner's ${mode} cards`, async () => {
      const cardId = await cardIn(stack, partner, mode, 'active');
      await operate('partner', 'suspend', partner.id, ...REASON);
      const { code, json, err } = await operate('card', 'block', cardId, ...REASON);
      assert.deepEqual([code, json?.status], [0, 'blocked'], err);
    });

    it(`is done for a ${mode} card although the command dies once it has recorded the request`, async () => {
      const cardId = await cardIn(stack, partner, mode, 'active');
      await askForStatusChange(stack.operator, { cardId, operation: 'freeze_card', reason: 'r' });
      await until('it is frozen', async () => (await readCardRow(stack, cardId))?.status === 'frozen');
      assert.deepEqual(await eventTypes(stack, cardId), ['card.issued', 'card.frozen']);
    });

    it(`works for a ${mode} card without Temporal and without ENCRYPTION_KEYS`, async () => {
      const cardId = await cardIn(stack, partner, mode, 'active');
      const { TEMPORAL_ADDRESS, ENCRYPTION_KEYS, ...bare } = environmentOf(stack.config);
      const frozen = await operateIn(bare)('card', 'freeze', cardId, ...REASON);
      assert.deepEqual([frozen.code, frozen.json?.status], [0, 'frozen'], frozen.err);
      const refusal = await operateIn(bare)('card', 'freeze', cardId, ...REASON);
      assert.deepEqual([refusal.code, refusal.out], [1, '']);
      assert.match(refusal.err, /was not frozen: it was refused \(set ENCRYPTION_KEYS to see why\)/);
    });
  }

  it('need an id and a reason, and refuse an unknown or hostile id with what to do', async () => {
    const cardId = await cardIn(stack, partner, 'test', 'active');
    for (const verb of VERBS) {
      const bare = await operate('card', verb, cardId);
      assert.deepEqual([bare.code, bare.out], [2, '']);
      assert.match(bare.err, /--reason/);
      for (const id of [newId('card'), 'card_', "x'; DROP TABLE card", 'é'.repeat(500)]) {
        const { code, out, err } = await operate('card', verb, id, ...REASON);
        assert.deepEqual([code, out], [1, ''], err);
        assert.match(err, /card list/);
      }
    }
    assert.deepEqual(await statusClaims(stack, cardId), []);
  });

  it('say how to give a card its id at the network, if that is missing, and record nothing', async () => {
    const cardId = await cardIn(stack, partner, 'live', 'active');
    await forgetNetworkCard(stack, cardId);
    const { code, err } = await operate('card', 'freeze', cardId, ...REASON);
    assert.equal(code, 1);
    assert.match(err, new RegExp(`operator card resolve ${cardId} --issued --network-card-id`));
    assert.deepEqual(await statusClaims(stack, cardId), []);
  });
});

describe('operator card freeze and block while the card network', () => {
  let stack: TestStack;
  let network: UnrulyNetwork;
  let partner: TestPartner;
  let operate: Operate;
  let impatient: Operate;
  let cardId: string;

  before(async () => {
    ({ stack, network } = await startUnrulyStack(500));
    operate = operateIn(environmentOf(stack.config));
    impatient = operateIn(environmentOf(stack.config), 500);
    partner = await fundedPartner(stack);
  });
  beforeEach(async () => {
    network.usual = (ask) => ask();
    cardId = await cardIn(stack, partner, 'live', 'active');
  });
  after(() => stack.stop());

  const untilBlocked = () =>
    until('it is blocked', async () => (await readCardRow(stack, cardId))?.status === 'blocked');

  it('is away go on by themselves, after the change of the partner that came first', async () => {
    network.usual = unavailable;
    assert.equal((await changeStatus(partner, cardId, 'freeze', { mode: 'live' })).status, 503);
    const { code, out, err } = await impatient('card', 'block', cardId, ...REASON);
    assert.deepEqual([code, out], [1, '']);
    assert.match(err, /recorded and goes on by itself, but card_\w+ is not blocked yet: another change of/);
    network.usual = (ask) => ask();
    await untilBlocked();
    assert.deepEqual(await eventTypes(stack, cardId), ['card.issued', 'card.frozen', 'card.blocked']);
    assert.equal(await networkStatus(stack, cardId), 'blocked');
  });

  it('is away say so', async () => {
    network.usual = unavailable;
    // Long enough for a worker to start it.
    const patient = operateIn(environmentOf(stack.config), 8_000);
    const { code, err } = await patient('card', 'block', cardId, ...REASON);
    assert.equal(code, 1);
    assert.match(err, /is not blocked yet: the card network has not confirmed it\. Look again with/);
    network.usual = (ask) => ask();
    await untilBlocked();
  });

  it('refuses the change print that, and the card stays as it is', async () => {
    network.next.push(refused);
    const { code, err } = await operate('card', 'freeze', cardId, ...REASON);
    assert.equal(code, 1);
    assert.match(err, /was not frozen: The card network refused the change\. The card is still active\./);
    assert.equal((await readCardRow(stack, cardId))?.status, 'active');
  });

  it('can be asked, but no worker is there to do so, say what to check', async () => {
    await stack.stopWorker();
    try {
      const nowhere = operateIn({ ...environmentOf(stack.config), TASK_QUEUE_PREFIX: 'nobody-' }, 500);
      const none = await nowhere('card', 'block', cardId, ...REASON);
      assert.equal(none.code, 1);
      assert.match(none.err, /is not blocked yet: check that a worker is running\. Look again with/);
      // Temporal takes two minutes to forget the worker.
      const one = await impatient('card', 'block', cardId, ...REASON);
      assert.match(one.err, /is not blocked yet: a worker is running, so see its log/);
    } finally {
      await stack.startWorker(network.options);
    }
    await untilBlocked();
    assert.deepEqual(await eventTypes(stack, cardId), ['card.issued', 'card.blocked']);
  });
});

describe('the database lets an operator claim', () => {
  let stack: TestStack;
  before(async () => {
    stack = await sharedStack();
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
