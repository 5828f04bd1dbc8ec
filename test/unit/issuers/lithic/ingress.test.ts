import assert from 'node:assert/strict';
import { pino } from 'pino';
import { Webhook } from 'standardwebhooks';
import {
  makeAuthorizationRequest,
  makeCard,
  makeEvent,
  makeTransaction,
} from '../../../../dev/lithic/objects.ts';
import { ApiError } from '../../../../domain/api-error.ts';
import type { DeclineReason } from '../../../../domain/authorization.ts';
import type { IngressRoute, MessageResult } from '../../../../issuers/card-network.ts';
import { lithicIngress } from '../../../../issuers/lithic/ingress.ts';

const secretOf = (fill: number) => `whsec_${Buffer.alloc(24, fill).toString('base64')}`;
const config = {
  apiKey: 'key',
  webhookSecret: secretOf(1),
  asaSecret: secretOf(2),
  baseUrl: 'http://127.0.0.1:1',
  cardProgramToken: null,
  requestsPerSecond: 5,
};
const logLines: string[] = [];
const logger = pino({ level: 'info' }, { write: (line: string) => logLines.push(line) });
const [events, authorizations] = lithicIngress(config, logger) as [IngressRoute, IngressRoute];

const card = makeCard({}, new Date());
const transaction = makeTransaction(card, { country: 'AUT', mcc: '5462' }, new Date());
transaction.events = [makeEvent({ type: 'AUTHORIZATION', amount: 500 }, new Date())];
const updated = { event_type: 'card_transaction.updated', ...transaction };

function post(value: unknown, { secrets = [config.webhookSecret], at = new Date(), id = 'msg_1' } = {}) {
  const body = JSON.stringify(value);
  const signature = secrets.map((secret) => new Webhook(secret).sign(id, at, body)).join(' ');
  return {
    body: Buffer.from(body),
    headers: {
      'webhook-id': id,
      'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
      'webhook-signature': signature,
    },
  };
}

type Status = 'AUTHORIZATION' | 'BALANCE_INQUIRY' | 'CREDIT_AUTHORIZATION' | 'FINANCIAL_AUTHORIZATION';

function request(
  asked: { amount?: number; status?: Status; eventToken?: string | null } = {},
  change: (value: ReturnType<typeof makeAuthorizationRequest>) => unknown = (value) => value,
) {
  const { amount = 500, status = 'AUTHORIZATION', eventToken = null } = asked;
  const value = change(makeAuthorizationRequest(transaction, card, { amount, status, eventToken }));
  return authorizations.read(post(value, { secrets: [config.asaSecret] }));
}

async function answered(result: MessageResult): Promise<unknown> {
  const read = await request();
  assert.equal(read.handling, 'now');
  const { status, body } = await (read as Extract<typeof read, { handling: 'now' }>).respond([result]);
  assert.equal(status, 200);
  return body;
}

describe("Lithic's posts", () => {
  /** What a signature must be is in test/unit/issuers/standard-webhooks.test.ts. */
  describe('signatures', () => {
    it("are believed if the scheme's own library made them with the path's secret", () => {
      assert.ok(events.verify(post(updated)));
      assert.ok(authorizations.verify(post({}, { secrets: [config.asaSecret] })));
    });

    it("are not believed with the other path's secret", () => {
      assert.ok(!events.verify(post(updated, { secrets: [config.asaSecret] })));
      assert.ok(!authorizations.verify(post(updated)));
    });
  });

  describe('events', () => {
    it('name their transaction, with all that we read of it and no more', async () => {
      const secret = { ...updated, pan: card.pan, cardholder: 'Ada', token_info: { pan: card.pan } };
      const read = await events.read(post(secret));
      assert.ok(read.handling === 'later');
      const { id, networkCardId, state } = read.object;
      assert.deepEqual([id, networkCardId, read.response.status], [transaction.token, card.token, 200]);
      const kept = Buffer.from(state?.body ?? []).toString();
      assert.doesNotMatch(kept, new RegExp(`${card.pan}|Ada|pos|tags`));
      assert.equal(JSON.parse(kept).events[0].token, transaction.events[0]?.token);
      assert.deepEqual(state?.version, [1, Date.parse(transaction.updated)]);
    });

    it('only name the transaction if this release can not read the rest', async () => {
      const read = await events.read(post({ ...updated, amounts: 'more of them' }));
      assert.ok(read.handling === 'later');
      const { id, state } = read.object;
      assert.deepEqual([id, state], [transaction.token, null]);
    });

    it('are answered and forgotten if they are about something else', async () => {
      const read = await events.read(post({ event_type: 'card.created', card_token: card.token }));
      assert.ok(read.handling === 'now');
      assert.deepEqual([read.messages, (await read.respond([])).status], [[], 200]);
    });

    it('are refused without the transaction they are about', async () => {
      assert.throws(() => events.read(post({ event_type: 'card_transaction.updated' })), ApiError);
    });
  });

  describe('requests', () => {
    it('are requests for the additional amount, named by their webhook-id', async () => {
      const read = await request();
      assert.ok(read.handling === 'now');
      assert.deepEqual(read.messages, [
        {
          type: 'request',
          networkCardId: card.token,
          paymentId: transaction.token,
          key: 'msg_1',
          id: null,
          amountCents: 500,
          merchant: { name: 'COFFEE SHOP', categoryCode: '5462', city: 'NEW YORK', country: 'AT' },
        },
      ]);
    });

    it('are named by their event, if the program has that', async () => {
      const read = await request({ eventToken: 'event-1' });
      assert.ok(read.handling === 'now' && read.messages[0]?.type === 'request');
      assert.deepEqual([read.messages[0].key, read.messages[0].id], ['event-1', 'event-1']);
    });

    it('are approved without a message if they take no money', async () => {
      for (const status of ['BALANCE_INQUIRY', 'CREDIT_AUTHORIZATION'] as const) {
        const read = await request({ status });
        assert.ok(read.handling === 'now');
        assert.deepEqual(read.messages, []);
        const body = { token: transaction.token, result: 'APPROVED' };
        assert.deepEqual(await read.respond([]), { status: 200, body });
      }
    });

    it('are answered with what was decided', async () => {
      const results: [DeclineReason | null, string][] = [
        [null, 'APPROVED'],
        ['card_frozen', 'CARD_PAUSED'],
        ['card_blocked', 'CARD_PAUSED'],
        ['merchant_category_not_allowed', 'UNAUTHORIZED_MERCHANT'],
        ['merchant_country_not_allowed', 'UNAUTHORIZED_MERCHANT'],
        ['spending_limit_exceeded', 'VELOCITY_EXCEEDED'],
        ['insufficient_card_balance', 'INSUFFICIENT_FUNDS'],
        ['authorization_not_pending', 'DECLINED'],
      ];
      for (const [declineReason, result] of results) {
        const decided = { status: 'decided', declineReason, authorizationId: null } as const;
        assert.deepEqual(await answered(decided), { token: transaction.token, result });
      }
    });

    it('are declined, and logged, if they can not be decided', async () => {
      logLines.length = 0;
      const undecided = { status: 'undecided', error: new ApiError('card_not_found') } as const;
      assert.deepEqual(await answered(undecided), { token: transaction.token, result: 'CARD_PAUSED' });
      assert.match(logLines.join(), /card_not_found/);
    });

    it('are declined, and logged, if they are not in dollars', async () => {
      logLines.length = 0;
      const read = await request({}, (value) => {
        value.amounts.cardholder.currency = 'EUR';
        return value;
      });
      assert.ok(read.handling === 'now');
      assert.deepEqual(read.messages, []);
      assert.deepEqual((await read.respond([])).body, { token: transaction.token, result: 'DECLINED' });
      assert.match(logLines.join(), /currency/);
    });

    it('are refused if what they ask for can not be read', () => {
      assert.throws(
        () => request({}, ({ card: _, ...rest }) => rest),
        (error) => error instanceof ApiError && error.code === 'validation_failed',
      );
    });
  });
});
