import assert from 'node:assert/strict';
import type { FakeIncrease } from '../../../dev/increase/fake-increase.ts';
import {
  type IncreaseCard,
  liveCard,
  read,
  startIncreaseStack,
  untilRead,
} from '../../support/adapters/increase-stack.ts';
import { scratchFolder, startDyingWorker } from '../../support/crash/processes.ts';
import { assertLedgerClean } from '../../support/money.ts';
import { asOwner } from '../../support/postgres.ts';
import type { TestStack } from '../../support/stack.ts';
import { until } from '../../support/until.ts';

const ISSUED_CENTS = 10_000;
const MISSING_CENTS = 900;

/** Where the worker dies, and whether the true-up is in its table by then. */
const PLACES = {
  'of a block': {
    movedCents: ISSUED_CENTS,
    places: [
      ['update "card" set "status"', 'before commit', false],
      ['update "true_up" set "status"', 'before', true],
      ['update "true_up" set "status"', 'after', true],
    ],
  },
  'of a clearing above the balance': {
    movedCents: MISSING_CENTS,
    places: [
      ['INSERT INTO card_authorization', 'before commit', false],
      ['INSERT INTO card_authorization', 'after commit', true],
      ['update "true_up" set "status"', 'before', true],
      ['update "true_up" set "status"', 'after', true],
    ],
  },
} as const;

describe("the money that a card's account at Increase has too much or too little,", () => {
  let stack: TestStack;
  let fake: FakeIncrease;
  let stop: () => Promise<void>;
  const folder = scratchFolder();
  let card: IncreaseCard;
  before(async () => {
    // The worker that is killed does all the work.
    ({ stack, fake, stop } = await startIncreaseStack({}, { hosted: false }));
  });
  beforeEach(async () => {
    card = await liveCard(stack);
  });
  after(async () => {
    await assertLedgerClean(stack);
    await stop();
  });

  const trueUps = () =>
    asOwner<{ status: string }>(stack, 'SELECT status FROM true_up WHERE card_id = $1', [card.cardId]);
  const begin = (what: keyof typeof PLACES) =>
    what === 'of a block'
      ? card.partner.call('POST', `/cards/${card.cardId}/block`, { mode: 'live' })
      : fake.simulations.settle({ card_id: card.networkCardId, amount: ISSUED_CENTS + MISSING_CENTS });

  for (const what of ['of a block', 'of a clearing above the balance'] as const) {
    const { places, movedCents } = PLACES[what];
    for (const [text, when, isBooked] of places) {
      it(`${what}, is moved once if the worker is killed (${when} ${text})`, async () => {
        await untilRead(stack, fake);
        await stack.stopWorker();
        const died = await startDyingWorker(stack.config, folder, text, when);
        const begun = begin(what);
        await died();
        assert.equal((await trueUps()).length, isBooked ? 1 : 0);

        await stack.startWorker();
        await begun;
        await until('it is moved', async () => {
          // As a minute later.
          await asOwner(stack, [
            "UPDATE network_inbox SET retry_after = '-infinity'",
            "UPDATE true_up SET retry_after = '-infinity'",
          ]);
          const rows = await trueUps();
          return rows.length === 1 && rows[0]?.status === 'succeeded';
        });
        await untilRead(stack, fake);
        assert.equal((await read(card)).balance, 0);
        const accountId = fake.bank.card(card.networkCardId).account_id;
        assert.equal(fake.bank.books.cents[accountId] ?? 0, 0);
        const moved = fake.bank.books.transfers.filter(({ idempotency_key: name }) =>
          name?.startsWith('tru_'),
        );
        assert.deepEqual(
          moved
            .filter((one) => [one.account_id, one.destination_account_id].includes(accountId))
            .map(({ amount }) => amount),
          [movedCents],
        );
      });
    }
  }
});
