import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { expectError, expectReplay } from '../../support/api/answers.ts';
import { cardIn, changeStatus, statusClaims } from '../../support/card-status.ts';
import { createCard, eventTypes } from '../../support/cards.ts';
import { fundedPartner } from '../../support/money.ts';
import { sharedStack } from '../../support/shared-stack.ts';
import type { Answer, TestPartner, TestStack } from '../../support/stack.ts';

const statusesOf = (answers: readonly Answer[]) => answers.map(({ status }) => status).sort();

for (const mode of ['test', 'live'] as const) {
  describe(`an Idempotency-Key of freeze, unfreeze or block in ${mode} mode`, () => {
    let stack: TestStack;
    let partner: TestPartner;
    let cardId: string;
    before(async () => {
      stack = await sharedStack();
      partner = await fundedPartner(stack, 10_000_000);
    });
    beforeEach(async () => {
      cardId = await cardIn(stack, partner, mode, 'active');
    });

    const freeze = (idempotencyKey?: string) =>
      changeStatus(partner, cardId, 'freeze', { mode, ...(idempotencyKey && { idempotencyKey }) });

    it('replays a 200 byte for byte, even when the card has changed since', async () => {
      const key = randomUUID();
      const first = await freeze(key);
      assert.equal(first.status, 200, first.text);
      assert.equal((await changeStatus(partner, cardId, 'unfreeze', { mode })).status, 200);
      expectReplay(await freeze(key), first);
      assert.deepEqual(await eventTypes(stack, cardId), ['card.issued', 'card.frozen', 'card.unfrozen']);
    });

    it('replays a 409, even when the card could be changed since', async () => {
      const key = randomUUID();
      const unfreeze = () => changeStatus(partner, cardId, 'unfreeze', { mode, idempotencyKey: key });
      const first = await unfreeze();
      expectError(first, 'invalid_state');
      assert.equal((await freeze()).status, 200);
      expectReplay(await unfreeze(), first);
      assert.deepEqual(await eventTypes(stack, cardId), ['card.issued', 'card.frozen']);
    });

    it('treats no body, an empty one and {} as the same request', async () => {
      const key = randomUUID();
      const first = await freeze(key);
      const path = `/cards/${cardId}/freeze`;
      const options = { mode, idempotencyKey: key };
      expectReplay(await partner.call('POST', path, { ...options, body: {} }), first);
      expectReplay(await partner.call('POST', path, { ...options, body: '' }), first);
    });

    it('gets 422 if it was used for another verb, card or endpoint', async () => {
      const key = randomUUID();
      assert.equal((await freeze(key)).status, 200);
      const other = await cardIn(stack, partner, mode, 'active');
      for (const answer of [
        await changeStatus(partner, cardId, 'unfreeze', { mode, idempotencyKey: key }),
        await changeStatus(partner, other, 'freeze', { mode, idempotencyKey: key }),
        await createCard(partner, { amount: 1_000 }, { mode, idempotencyKey: key }),
      ]) {
        expectError(answer, 'idempotency_conflict');
      }
      assert.deepEqual(await eventTypes(stack, cardId), ['card.issued', 'card.frozen']);
      assert.deepEqual(await eventTypes(stack, other), ['card.issued']);
    });

    it('makes one change when 20 requests use it at once', async () => {
      const key = randomUUID();
      const answers = await Promise.all(Array.from({ length: 20 }, () => freeze(key)));
      const [first] = answers.filter(({ status }) => status === 200);
      assert.ok(first);
      for (const answer of answers) {
        if (answer.status === 200) assert.equal(answer.text, first.text);
        else expectError(answer, 'idempotency_in_flight');
      }
      assert.equal((await freeze(key)).text, first.text);
      assert.deepEqual(await eventTypes(stack, cardId), ['card.issued', 'card.frozen']);
      assert.equal((await statusClaims(stack, cardId)).length, 1);
    });

    it('is optional, and two simultaneous requests without one are judged one after the other', async () => {
      const answers = await Promise.all([freeze(), freeze()]);
      assert.deepEqual(statusesOf(answers), [200, 409]);
      const refused = answers.find(({ status }) => status === 409);
      assert.match(refused?.json.error.message, /^The card is frozen\. /);
      assert.deepEqual(await eventTypes(stack, cardId), ['card.issued', 'card.frozen']);
    });

    it('counts as missing if it is empty', async () => {
      assert.equal((await freeze('')).status, 200);
      expectError(
        await changeStatus(partner, cardId, 'freeze', { mode, idempotencyKey: '' }),
        'invalid_state',
      );
    });
  });
}
