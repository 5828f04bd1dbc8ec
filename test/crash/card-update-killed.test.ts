import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import type { Mode } from '../../domain/mode.ts';
import { createCard, eventTypes } from '../support/cards.ts';
import { askUntilEnd, END_TITLES, ENDS, type End } from '../support/crash/ask-until-end.ts';
import { scratchFolder } from '../support/crash/processes.ts';
import { fundedPartner } from '../support/money.ts';
import { startTestStack, type TestStack } from '../support/stack.ts';

describe('a change of a card', function () {
  this.timeout(240_000);
  let stack: TestStack;
  let folder: string;
  before(async () => {
    folder = scratchFolder();
    stack = await startTestStack({ logLevel: 'error' });
  });
  after(async () => {
    await stack.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  for (const mode of ['test', 'live'] as const satisfies Mode[]) {
    for (const end of Object.keys(ENDS) as End[]) {
      it(`has one effect and one event in ${mode} mode, and a retry gets its response, when ${END_TITLES[end]}`, async () => {
        const partner = await fundedPartner(stack);
        const { json: card } = await createCard(partner, { amount: 1_000 }, { mode });
        const path = `/cards/${card.id}`;
        const body = { card_name: 'Ads', email: 'ada@example.com', metadata: { order: '4711' } };
        const idempotencyKey = randomUUID();
        await askUntilEnd(stack.config, folder, end, {
          mode,
          partner,
          method: 'PATCH',
          path,
          body,
          key: idempotencyKey,
        });
        const changed = { ...card, ...body };
        const left = (await partner.call('GET', path, { mode })).json;
        assert.deepEqual(left, ENDS[end] ? changed : card);

        const retry = await partner.call('PATCH', path, { mode, body, idempotencyKey });
        assert.deepEqual([retry.status, retry.json], [200, changed], retry.text);
        assert.equal(retry.headers.get('idempotent-replayed') === 'true', ENDS[end]);
        assert.deepEqual((await partner.call('GET', path, { mode })).json, changed);
        assert.deepEqual(await eventTypes(stack, card.id), ['card.issued', 'card.updated']);
      });
    }
  }
});
