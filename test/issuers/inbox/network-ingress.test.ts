import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import Koa from 'koa';
import { pino } from 'pino';
import { Histogram } from 'prom-client';
import { respondWithErrors } from '../../../api/http/errors.ts';
import { logRequest, type RequestState } from '../../../api/http/log-request.ts';
import { readReport } from '../../../domain/simulated-network.ts';
import type { IngressRoute } from '../../../issuers/card-network.ts';
import { networkRoutes } from '../../../issuers/inbox/routes.ts';
import { createMessageQueue } from '../../../payments/message-queue.ts';
import { networkIdOf, networkTransaction } from '../../support/api/network-events.ts';
import { createCard } from '../../support/cards.ts';
import { assertLedgerClean, fundedPartner } from '../../support/money.ts';
import { sharedStack } from '../../support/shared-stack.ts';
import { type LoopbackServer, listenOnLoopback } from '../../support/sockets.ts';
import type { TestPartner, TestStack } from '../../support/stack.ts';

/** The ingress of a network that posts lists of events, some of which mean nothing to us, and expects a list of its own. */
const events: IngressRoute = {
  path: '/network/elsewhere/events',
  signatureHeader: 'X-Elsewhere',
  verify: ({ headers }) => headers['x-elsewhere'] === 'signed',
  read: async ({ body }) => {
    const posted: { paid?: Record<string, unknown> }[] = JSON.parse(Buffer.from(body).toString());
    const messages = posted.flatMap(({ paid }) => {
      const said = paid === undefined ? null : readReport(paid);
      return said === null || 'issues' in said ? [] : [{ type: 'simulated report' as const, said }];
    });
    return {
      handling: 'now',
      messages,
      respond: (results) => ({ status: 200, body: { seen: results.map(({ status }) => status) } }),
    };
  },
};

describe("a card network's ingress", () => {
  let stack: TestStack;
  let partner: TestPartner;
  let networkCardId: string;
  let cardId: string;
  let server: LoopbackServer;

  before(async () => {
    stack = await sharedStack();
    partner = await fundedPartner(stack, 100_000);
    cardId = (await createCard(partner, { amount: 1_000 }, { mode: 'live' })).json.id;
    networkCardId = await networkIdOf(stack, cardId);
    const logger = pino({ level: 'silent' });
    const app = new Koa<RequestState>();
    const durations = new Histogram({
      name: 'durations',
      help: 'durations',
      labelNames: ['method', 'route', 'status'],
      registers: [],
    });
    app.use(logRequest(logger, durations, () => '127.0.0.1'));
    app.use(respondWithErrors(logger));
    const routes = networkRoutes({
      orm: stack.orm,
      ring: stack.operator.ring,
      client: stack.client,
      messages: createMessageQueue(stack.orm, () => {}),
      authorizationTtlMs: 1_000,
      cardNetwork: 'elsewhere',
      ingress: [events],
      eventsWritten: () => {},
      inboxFilled: () => {},
      logger,
    });
    app.use(routes.routes());
    server = await listenOnLoopback(app.callback());
  });
  after(async () => {
    await server.close();
    await assertLedgerClean(stack, partner);
  });

  const send = async (body: unknown, signature = 'signed') => {
    const response = await fetch(`${server.url}${events.path}`, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { 'x-elsewhere': signature },
    });
    return { status: response.status, json: JSON.parse(await response.text()) };
  };

  it('has each message of a post handled, in order, and answers in its own words', async () => {
    const paid = networkTransaction(networkCardId);
    const unknown = networkTransaction(`no_card_${randomUUID()}`);
    const posted = [{ paid }, { something: 'else' }, { paid: unknown }, { paid }];
    const { status, json } = await send(posted);
    assert.deepEqual([status, json], [200, { seen: ['booked', 'kept', 'booked'] }]);
    assert.deepEqual((await send(posted)).json, json, 'repeated, it gets the same response');
    const { json: card } = await partner.call('GET', `/cards/${cardId}`, { mode: 'live' });
    assert.equal(card.balance, 900);
  });

  it('may contain nothing that concerns us', async () => {
    assert.deepEqual(await send([{ something: 'else' }]), { status: 200, json: { seen: [] } });
  });

  it('is not read before its signature is verified', async () => {
    const { status, json } = await send('not even a list', 'forged');
    assert.deepEqual([status, json.error.code], [401, 'invalid_api_key']);
    assert.match(json.error.message, /X-Elsewhere/);
  });
});
