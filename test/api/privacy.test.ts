import assert from 'node:assert/strict';
import { createCard, settledCard } from '../support/cards.ts';
import { column } from '../support/column.ts';
import { fundedPartner } from '../support/money.ts';
import { startTestStack, type TestPartner, type TestStack } from '../support/stack.ts';
import { decodeBytes, tableContents, workflowTexts } from '../support/stored-data.ts';

const PERSONAL = ['Zebulonia', 'Quackenbush', 'zq-mail@example.com', 'Zq card label', 'Zq-key', 'Zq value'];
const CARDHOLDER = {
  cardholder_first_name: PERSONAL[0],
  cardholder_last_name: PERSONAL[1],
  email: PERSONAL[2],
  card_name: PERSONAL[3],
  metadata: { 'Zq-key': PERSONAL[5] },
};
/** Where the rules say that a cardholder's data is in clear. */
const IN_CLEAR = ['public.card', 'public.event'];

describe('personal and secret data', () => {
  let stack: TestStack;
  let partner: TestPartner;
  let cardIds: string[];
  let secrets: string[];

  before(async () => {
    stack = await startTestStack({ logLevel: 'trace', cardCreationWaitMs: 30_000 });
    partner = await fundedPartner(stack, 100_000);
    secrets = [
      ...[partner.keys.test, partner.keys.live].flatMap((key) => [key, key.slice(8, -4)]),
      ...stack.config.encryptionKeys.flatMap(({ secret }) => [
        secret.toString('base64'),
        secret.toString('hex'),
      ]),
    ];
    // Every way a card can go, and every kind of error that could quote what was sent.
    const live = { mode: 'live' } as const;
    const made = [
      await createCard(partner, { ...CARDHOLDER, amount: 1_000 }),
      await createCard(
        partner,
        { ...CARDHOLDER, amount: 1_000, external_ref: 'r' },
        { ...live, idempotencyKey: 'k' },
      ),
      await createCard(partner, { ...CARDHOLDER, amount: 1_041 }, live),
      await createCard(partner, { ...CARDHOLDER, amount: 1_043 }, live),
      await createCard(partner, { ...CARDHOLDER, amount: 1_044 }, live),
      await createCard(partner, { ...CARDHOLDER, amount: 1_048 }, live),
    ];
    assert.deepEqual(column(made, 'status'), [201, 201, 202, 202, 201, 201]);
    cardIds = made.map((answer) => answer.json.id);
    for (const [index, mode] of (['test', 'live'] as const).entries()) {
      const changed = { ...live, mode, body: { card_name: `${PERSONAL[3]} 2`, email: PERSONAL[2] } };
      assert.equal((await partner.call('PATCH', `/cards/${cardIds[index]}`, changed)).status, 200);
    }
    const simulate = `/test/cards/${cardIds[0]}/simulate-transaction`;
    for (const options of [{}, { idempotencyKey: 'simulated' }]) {
      const body = { type: 'purchase', amount: 100, merchant_name: 'Zq merchant' };
      assert.equal((await partner.call('POST', simulate, { body, ...options })).status, 201);
    }
    const refused = [
      await createCard(partner, { ...CARDHOLDER, amount: 1_042 }, live),
      await createCard(partner, { ...CARDHOLDER, amount: 1_000_000 }),
      await createCard(partner, { ...CARDHOLDER, amount: 1 }),
      await createCard(partner, { ...CARDHOLDER, amount: '1' }),
      await createCard(partner, { ...CARDHOLDER, amount: 1_000, external_ref: 'r' }, live),
      await createCard(
        partner,
        { ...CARDHOLDER, amount: 1_001, external_ref: 'r' },
        { ...live, idempotencyKey: 'k' },
      ),
      await partner.call('POST', '/cards', { body: `{"email":"${PERSONAL[2]}"`, idempotencyKey: 'x' }),
      await partner.call('GET', `/cards?external_ref=${PERSONAL[0]}&${PERSONAL[1]}=1`),
      await partner.call('GET', `/cards/${PERSONAL[0]}`),
      await partner.call('PATCH', `/cards/${cardIds[0]}`, { body: { metadata: { 'Zq-key': 1 } } }),
      await partner.call('PATCH', `/cards/${cardIds[0]}`, { body: { 'Zq-key': 1 } }),
      await partner.call('GET', '/ping', { headers: { authorization: `Basic ${partner.keys.test}` } }),
    ];
    assert.deepEqual(column(refused, 'status'), [402, 402, 422, 400, 409, 422, 400, 400, 404, 400, 400, 401]);
    for (const cardId of cardIds.slice(2, 4)) await settledCard(partner, cardId);
  });
  after(() => stack.stop());

  const expectNone = (text: string, where: string) => {
    for (const word of [...PERSONAL, ...secrets]) {
      assert.ok(!text.includes(word as string), `${where} has ${word}: ${text.slice(0, 500)}`);
    }
  };

  it('appear in no log line', () => {
    assert.ok(stack.logLines.length > 20);
    for (const line of stack.logLines) {
      expectNone(line, 'a log line');
      assert.ok(!line.includes('Zq merchant'), 'where a cardholder pays is theirs as well');
    }
  });

  it("appear in clear in no table, except for the cardholder's data in cards and events", async () => {
    const contents = await tableContents(stack);
    for (const table of IN_CLEAR) {
      const text = contents[table]?.join('\n') ?? '';
      assert.ok(
        PERSONAL.every((word) => text.includes(word as string)),
        table,
      );
    }
    for (const [table, rows] of Object.entries(contents)) {
      for (const row of rows) {
        // What is sealed begins with the id of its key.
        const decoded = decodeBytes(row);
        if (table === 'public.idempotency_claim') assert.ok(decoded.includes('\x02k1'));
        // A partition has what its table has.
        const parent = table.replace(/^public\.event_\w+$/, 'public.event');
        for (const word of IN_CLEAR.includes(parent) ? secrets : [...PERSONAL, ...secrets]) {
          assert.ok(!decoded.includes(word as string), `${table} has ${word}`);
        }
      }
    }
  });

  it("appear in no workflow's history, memo, search attributes, id or details", async () => {
    const workflows = await workflowTexts(stack);
    for (const [workflowId, text] of workflows) expectNone(text, workflowId);
    assert.ok(workflows.size >= cardIds.length - 1, 'the workflows were not found');
  });

  it('are left out of the one JSON line that each request logs, with its id and its account once that is known', () => {
    const lines = stack.logLines.map((line) => JSON.parse(line)).filter((line) => line.msg === 'request');
    assert.equal(new Set(lines.map((line) => line.requestId)).size, lines.length);
    for (const line of lines.filter((line) => line.route === '/network/callbacks')) {
      assert.match(line.workflowId, /^issue-card\//);
    }
    for (const line of lines.filter((line) => line.route.startsWith('/v1/'))) {
      assert.match(line.requestId, /^req_/);
      assert.deepEqual(
        [typeof line.method, typeof line.route, typeof line.status, typeof line.durationMs],
        ['string', 'string', 'number', 'number'],
      );
      if (line.status !== 401)
        assert.deepEqual([line.partnerId, ['test', 'live'].includes(line.mode)], [partner.id, true]);
      if ([400, 401, 404].includes(line.status)) assert.equal(typeof line.code, 'string');
    }
    const workflows = lines.filter((line) => line.workflowId !== undefined).map((line) => line.workflowId);
    const [testCardId, ...liveCardIds] = cardIds;
    assert.ok(!workflows.includes(`issue-card/${testCardId}`));
    for (const cardId of liveCardIds) assert.ok(workflows.includes(`issue-card/${cardId}`), cardId);
  });
});
