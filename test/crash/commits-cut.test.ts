import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Mode } from '../../domain/mode.ts';
import { query } from '../../platform/db/sql.ts';
import { networkIdOf, networkTransaction, sendAsNetwork } from '../support/api/network-events.ts';
import { cardIn } from '../support/card-status.ts';
import { createCard, eventTypes } from '../support/cards.ts';
import {
  LIVE_MESSAGES,
  leftOf,
  listOf,
  networkMessage,
  prepareAuthorization,
  sendMessage,
  TEST_OPERATIONS,
} from '../support/crash/authorizations.ts';
import {
  assertReplays,
  assertTakesPlaceOnce,
  CUTS,
  type Cuts,
  cutCommits,
} from '../support/crash/cut-commits.ts';
import { assertLedgerClean, balanceOf, fundedPartner, priceOf } from '../support/money.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../support/stack.ts';

const CARD_CENTS = 10_000;
const DETAILS = { card_name: 'Ads', email: 'ada@example.com', metadata: { order: '4711' } };

/** A request about a card of $100, or without one, and what it leaves. */
interface CardCommand {
  mode?: Mode;
  of: 'active' | 'frozen' | null;
  method?: 'PATCH';
  verb: string;
  body?: object;
  /** What the card then shows. */
  shows?: object;
  events?: string[];
  /** What the prepaid balance pays. */
  paid: number;
  /** What there is one more of. */
  makes?: 'cards' | 'top_ups' | 'withdrawals' | 'transactions';
  /** By how much the test clock then is further ahead. */
  advances?: number;
}

const shows = (cents: number, status = 'active') => ({ status, balance: cents, available_balance: cents });

const COMMANDS: Record<string, CardCommand> = {
  'an issuance': {
    of: null,
    verb: '/cards',
    body: { amount: CARD_CENTS },
    events: ['card.issued'],
    paid: priceOf(CARD_CENTS),
    makes: 'cards',
  },
  'a top-up': {
    of: 'active',
    verb: '/topups',
    body: { amount: CARD_CENTS },
    shows: shows(2 * CARD_CENTS),
    events: ['topup.succeeded'],
    paid: priceOf(CARD_CENTS, 'card_topup'),
    makes: 'top_ups',
  },
  'a withdrawal': {
    of: 'active',
    verb: '/withdrawals',
    body: { amount: 4_000 },
    shows: shows(6_000),
    events: ['withdrawal.succeeded'],
    paid: -4_000,
    makes: 'withdrawals',
  },
  'a purchase': {
    of: 'active',
    verb: 'simulate-transaction',
    body: { type: 'purchase', amount: 100 },
    shows: shows(9_900),
    events: ['card.transaction.created'],
    paid: 11,
    makes: 'transactions',
  },
  'a freeze': {
    of: 'active',
    verb: '/freeze',
    shows: shows(CARD_CENTS, 'frozen'),
    events: ['card.frozen'],
    paid: 0,
  },
  'an unfreeze': {
    of: 'frozen',
    verb: '/unfreeze',
    shows: shows(CARD_CENTS),
    events: ['card.unfrozen'],
    paid: 0,
  },
  'a block': {
    of: 'active',
    verb: '/block',
    shows: shows(0, 'blocked'),
    events: ['card.blocked'],
    paid: -CARD_CENTS,
  },
  'a change of a test card': {
    of: 'active',
    method: 'PATCH',
    verb: '',
    body: DETAILS,
    shows: DETAILS,
    events: ['card.updated'],
    paid: 0,
  },
  'a change of a live card': {
    mode: 'live',
    of: 'active',
    method: 'PATCH',
    verb: '',
    body: DETAILS,
    shows: DETAILS,
    events: ['card.updated'],
    paid: 0,
  },
  'a credit of the test balance': { of: null, verb: '/test/credit', body: { amount: 500 }, paid: -500 },
  'an advance of the sandbox clock': {
    of: null,
    verb: '/test/clock/advance',
    body: { seconds: 3_600 },
    paid: 0,
    advances: 3_600,
  },
};

describe('a request whose connection to PostgreSQL is cut before its COMMIT, and then after it,', () => {
  let stack: TestStack;
  let partner: TestPartner;
  let cuts: Cuts;
  before(async () => {
    stack = await sharedStack();
    partner = await fundedPartner(stack, 100_000_000);
    cuts = cutCommits();
  });
  after(async () => {
    cuts.undo();
    await assertLedgerClean(stack, partner);
  });

  for (const [name, command] of Object.entries(COMMANDS)) {
    it(`has one effect, whose response a retry gets: ${name}`, async () => {
      const { mode = 'test', of, method = 'POST', verb, makes, events = [], advances = 0 } = command;
      const cardId = of && (await cardIn(stack, partner, mode, of));
      const ofCard = verb === 'simulate-transaction' ? `/test/cards/${cardId}/` : `/cards/${cardId}`;
      const path = cardId === null ? verb : `${ofCard}${verb}`;
      const key = randomUUID();
      const body = { ...command.body, ...(makes === 'cards' && { external_ref: key }) };
      const left = () => readLeft(mode, cardId);
      const before = await left();
      const answer = await assertReplays(cuts, {
        send: () => partner.call(method, path, { mode, body, idempotencyKey: key }),
        parameter: key,
        left,
        leaves: {
          card: cardId && { ...before.card, ...command.shows },
          rows: { ...before.rows, ...(makes && { [makes]: before.rows[makes] + 1 }) },
          events: [...before.events, ...events],
          totalCents: before.totalCents - command.paid,
          clockSeconds: before.clockSeconds + advances,
        },
      });
      if (method === 'PATCH') assert.deepEqual(answer.json, (await left()).card);
    });
  }

  for (const [name, operation] of Object.entries(TEST_OPERATIONS)) {
    it(`has one effect, whose response a retry gets: ${name} in test mode`, async () => {
      const prepared = await prepareAuthorization(stack, partner, operation, 'test');
      const { cardId, authorizationId } = prepared;
      const of = authorizationId === null ? `cards/${cardId}` : `authorizations/${authorizationId}`;
      const key = randomUUID();
      await assertReplays(cuts, {
        send: () =>
          partner.call('POST', `/test/${of}/${operation.verb}`, {
            body: operation.body,
            idempotencyKey: key,
          }),
        parameter: key,
        left: () => leftOf(stack, prepared),
        leaves: operation.left,
      });
    });
  }

  for (const [name, operation] of Object.entries(LIVE_MESSAGES)) {
    it(`has one effect and one response, however often the network repeats it: ${name}`, async () => {
      const { verb, body, left } = operation;
      const prepared = await prepareAuthorization(stack, partner, operation, 'live');
      const message = networkMessage(prepared, verb, body);
      const { json } = await assertTakesPlaceOnce(cuts, {
        send: () => sendMessage(stack, message),
        parameter: message.networkTransactionId,
        isTriedAgain: verb !== 'authorization' && verb !== 'increment',
        left: () => leftOf(stack, prepared),
        leaves: left,
      });
      const [authorization] = await listOf(prepared, 'authorizations');
      const [transaction] = await listOf(prepared, 'transactions');
      if (verb === 'authorization' || verb === 'increment') {
        const { approved, authorizationId } = json;
        assert.deepEqual([approved, authorizationId], [left.paid === 0, authorization?.id]);
      } else if (verb === 'clearing') assert.deepEqual(json, { transactionId: transaction?.id });
      else assert.deepEqual(json, { authorizationId: authorization?.id });
    });
  }

  for (const [when] of CUTS) {
    it(`settles each transaction once, however many the network sends at once, if it is cut only ${when} the COMMIT`, async () => {
      const EACH = 12;
      const cards = await Promise.all(
        [0, 1, 2].map(() => createCard(partner, { amount: 1_000 }, { mode: 'live' })),
      );
      const cardIds = cards.map(({ json }): string => json.id);
      const blocked = cardIds[2] ?? '';
      assert.equal((await partner.call('POST', `/cards/${blocked}/block`, { mode: 'live' })).status, 200);
      const [, , beforeCents = 0] = await balanceOf(partner, 'live');
      const sent: Record<string, unknown>[] = [];
      for (const cardId of cardIds) {
        const networkCardId = await networkIdOf(stack, cardId);
        for (let i = 0; i < EACH; i++) sent.push(networkTransaction(networkCardId, { amountCents: 110 }));
      }
      const sendAll = () =>
        Promise.all(sent.map((one) => sendAsNetwork(stack, '/network/transactions', JSON.stringify(one))));
      // Others that came meanwhile share its transaction.
      cuts.arm(when, String(sent.at(-1)?.networkTransactionId));
      const first = await sendAll();
      const again = await sendAll();
      // The API tries again by itself what it doesn't know the result of.
      assert.deepEqual(new Set([...first, ...again].map(({ status }) => status)), new Set([200]));
      const told: string[] = again.map(({ json }) => json.transactionId);
      assert.deepEqual(
        first.map(({ json }) => json.transactionId),
        told,
      );
      assert.equal(new Set(told).size, sent.length);
      for (const cardId of cardIds) {
        const { json } = await partner.call('GET', `/cards/${cardId}/transactions?limit=100`, {
          mode: 'live',
        });
        const made: { id: string; type: string }[] = json.data;
        assert.deepEqual(
          made.map(({ id }) => id).toSorted(),
          told
            .slice(cardIds.indexOf(cardId) * EACH)
            .slice(0, EACH)
            .toSorted(),
        );
        const events = await eventTypes(stack, cardId);
        assert.equal(events.filter((type) => type === 'card.transaction.created').length, EACH);
        // A card of 1,000 pays for nine of 110; the prepaid balance pays for a blocked one.
        const paid = made.filter(({ type }) => type === 'purchase').length;
        assert.equal(paid, cardId === blocked ? EACH : 9);
      }
      const [, , afterCents = 0] = await balanceOf(partner, 'live');
      const purchases = 9 + 9 + EACH;
      const declines = 2 * (EACH - 9);
      assert.equal(beforeCents - afterCents, EACH * 110 + purchases * 11 + declines * 25);
    });
  }

  interface Rows {
    cards: number;
    top_ups: number;
    withdrawals: number;
    transactions: number;
  }

  async function readLeft(mode: Mode, cardId: string | null) {
    const [rows] = await query<Rows>(
      stack.orm.em.fork(),
      `SELECT (SELECT count(*)::int FROM card WHERE partner_id = $1 AND mode = $2) AS cards,
         (SELECT count(*)::int FROM card_transfer WHERE partner_id = $1 AND mode = $2 AND direction = 'topup') AS top_ups,
         (SELECT count(*)::int FROM card_transfer WHERE partner_id = $1 AND mode = $2 AND direction = 'withdrawal') AS withdrawals,
         (SELECT count(*)::int FROM card_transaction WHERE partner_id = $1 AND mode = $2) AS transactions`,
      [partner.id, mode],
    );
    const events = await query<{ type: string }>(
      stack.orm.em.fork(),
      'SELECT type FROM event WHERE partner_id = $1 AND mode = $2 ORDER BY id',
      [partner.id, mode],
    );
    const [, , totalCents = 0] = await balanceOf(partner, mode);
    const { offset_seconds: clockSeconds } = (await partner.call('GET', '/test/clock')).json;
    return {
      card: cardId && (await partner.call('GET', `/cards/${cardId}`, { mode })).json,
      rows: rows as Rows,
      events: events.map(({ type }) => type),
      totalCents,
      clockSeconds: Number(clockSeconds),
    };
  }
});
