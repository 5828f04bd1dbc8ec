import assert from 'node:assert/strict';
import { once } from 'node:events';
import { newId } from '../../platform/crypto/new-id.ts';
import { CLAIM_HAS_RESPONSE } from '../../platform/db/notifications.ts';
import { transaction } from '../../platform/db/transaction.ts';
import { storeResponse } from '../../requests/response.ts';
import { notifyResponse, readResponseNotice } from '../../requests/response-notice.ts';
import { openCommands, type TestCommands } from '../support/commands/open-commands.ts';

describe('notifyResponse', () => {
  let commands: TestCommands;
  before(async () => {
    commands = await openCommands();
  });
  after(() => commands.close());

  /** The notification about a claim whose answer is `resource`, or that has none. */
  async function announced(resource?: object): Promise<{ claimId: string; payload: string }> {
    const { orm, ring } = commands.context;
    const partnerId = await commands.createFundedPartner(100);
    const about = { partnerId, mode: 'test', cardId: newId('card') } as const;
    const claimId = await commands.claimOf('freeze_card', about, {});
    if (resource !== undefined) {
      await transaction(orm, (tx) => storeResponse({ tx, ring }, claimId, 201, resource));
    }
    const listener = await commands.connect();
    try {
      await listener.query(`LISTEN ${CLAIM_HAS_RESPONSE}`);
      const notified = once(listener, 'notification');
      await notifyResponse(commands.context.orm.em.fork(), { claimId });
      const [{ payload }] = await notified;
      return { claimId, payload };
    } finally {
      await listener.end();
    }
  }

  for (const length of [1, 100, 4_900]) {
    it(`includes a response of ${length} characters, which only the key ring can open`, async () => {
      const resource = { name: 'é'.padEnd(length, 'x') };
      const { claimId, payload } = await announced(resource);
      const hint = readResponseNotice(payload);
      assert.equal(hint.claimId, claimId);
      assert.deepEqual(hint.open(commands.context.ring), { status: 201, body: JSON.stringify(resource) });
      // Longer than what sealed bytes could have by chance.
      for (const text of [payload, atob(payload.split(' ')[2] ?? '')]) assert.ok(!text.includes('"name":'));
    });
  }

  for (const [name, resource] of [
    ['a response that is too long for a notification', { name: 'x'.repeat(20_000) }],
    ['a claim without a response', undefined],
  ] as const) {
    it(`contains only the id of ${name}`, async () => {
      const { claimId, payload } = await announced(resource);
      assert.equal(payload, claimId);
      assert.equal(readResponseNotice(payload).open(commands.context.ring), null);
    });
  }
});
