import assert from 'node:assert/strict';
import { ISSUERS, type Issuer } from '../../support/adapters/issuers.ts';
import { networkIdOf } from '../../support/api/network-events.ts';
import { createCard } from '../../support/cards.ts';
import { scratchFolder, startDyingWorker } from '../../support/crash/processes.ts';
import { inboxRead } from '../../support/inbox.ts';
import { assertLedgerClean, fundedPartner } from '../../support/money.ts';
import { asOwner } from '../../support/postgres.ts';
import type { TestPartner, TestStack } from '../../support/stack.ts';

const live = { mode: 'live' } as const;

for (const [name, start] of Object.entries(ISSUERS)) {
  describe(`a payment at ${name}, of which a part is cleared`, () => {
    let stack: TestStack;
    let issuer: Issuer;
    let partner: TestPartner;
    const folder = scratchFolder();
    before(async () => {
      issuer = await start({ worker: false });
      ({ stack } = issuer);
      partner = await fundedPartner(stack, 100_000);
    });
    afterEach(() => stack.stopWorker());
    after(async () => {
      await assertLedgerClean(stack);
      await issuer.stop();
    });

    for (const [text, when, isBooked] of [
      ['UPDATE "network_inbox" q', 'after', false],
      ['INSERT INTO card_authorization', 'before', false],
      ['ledger.apply_operations', 'after', false],
      ['INSERT INTO card_authorization', 'after', false],
      ['DELETE FROM network_inbox', 'before', false],
      ['DELETE FROM network_inbox', 'before commit', false],
      ['DELETE FROM network_inbox', 'after commit', true],
    ] as const) {
      it(`is booked once if the worker is killed -9 ${when} "${text}"`, async () => {
        await stack.startWorker();
        const { json: card, status } = await createCard(partner, { amount: 1_000 }, live);
        assert.equal(status, 201);
        await stack.stopWorker();
        (await issuer.authorize(await networkIdOf(stack, card.id), 300)).clear(200);
        await issuer.posted();
        const booked = async () =>
          (await partner.call('GET', `/cards/${card.id}/transactions`, live)).json.data;

        const died = await startDyingWorker(stack.config, folder, text, when);
        await died();
        assert.equal((await booked()).length, isBooked ? 1 : 0);

        await asOwner(stack, "UPDATE network_inbox SET retry_after = '-infinity'");
        await stack.startWorker();
        await inboxRead(stack);
        const { json } = await partner.call('GET', `/cards/${card.id}`, live);
        assert.deepEqual([json.balance, json.available_balance, (await booked()).length], [800, 700, 1]);
      });
    }
  });
}
