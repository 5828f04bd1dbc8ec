import assert from 'node:assert/strict';
import type { RequestListener } from 'node:http';
import { text } from 'node:stream/consumers';
import { TRANSFER_DIRECTIONS } from '../../../../domain/transfer.ts';
import { type CardNetwork, CardNetworkUnavailable } from '../../../../issuers/card-network.ts';
import { createSimulatedClient } from '../../../../issuers/simulated/client.ts';
import { issuance, statusChange, transfer } from '../../../support/adapters/network-requests.ts';
import { listenOnLoopback } from '../../../support/sockets.ts';

/** One call of a CardNetwork, and how it looks on the wire. */
interface Call {
  name: keyof CardNetwork;
  make(network: CardNetwork): Promise<unknown>;
  asks: [method: 'GET' | 'POST', path: string, body?: object];
  definite: readonly object[];
  unreadable: readonly object[];
  /** The envelope around an answer about this token or card, or about another. */
  answered(answer: object, about?: string): object;
}

const issued = { status: 'issued', networkCardId: 'sim_1', last4: '1234', expMonth: 2, expYear: 2030 };
const accepted = { status: 'accepted' };
const ended = [
  accepted,
  { status: 'declined', reason: 'declined_by_network' },
  { status: 'failed', reason: 'failed_at_network' },
];
const unknown = { status: 'unknown' };
const strange = [{ status: 'leaked' }, { status: 'declined', reason: 'Ada leaked' }];
const details = { pan: '4242424242424242', cvv: '007', expMonth: 2, expYear: 2030 };
const wrongDetails = [{ pan: '42424242424' }, { cvv: '12' }, { expYear: 30 }, { pan: undefined }];

const issue = issuance(0);
const freeze = statusChange('sim_1', 'frozen');

const CALLS: Call[] = [
  {
    name: 'issueCard',
    make: (network) => network.issueCard(issue),
    asks: ['POST', '/issuances', issue],
    definite: [issued, ...ended],
    unreadable: [unknown, { status: 'issued' }, { ...issued, last4: '12345' }, ...strange],
    answered: (issuance, token = issue.token) => ({ token, issuance }),
  },
  {
    name: 'lookUpIssuance',
    make: (network) => network.lookUpIssuance(issue.token),
    asks: ['GET', `/issuances/${issue.token}`],
    definite: [issued, ...ended, unknown],
    unreadable: [{ ...issued, expMonth: 13 }, ...strange],
    answered: (issuance, token = issue.token) => ({ token, issuance }),
  },
  ...TRANSFER_DIRECTIONS.flatMap((direction): Call[] => {
    const asked = transfer(direction, 'sim_1', 0);
    const { direction: _, ...body } = asked;
    const answered: Call['answered'] = (transfer, token = asked.token) => ({ token, transfer });
    return [
      {
        name: 'transfer',
        make: (network) => network.transfer(asked),
        asks: ['POST', `/${direction}s`, body],
        definite: [{ status: 'succeeded' }, ...ended],
        unreadable: [unknown, issued, ...strange],
        answered,
      },
      {
        name: 'lookUpTransfer',
        make: (network) => network.lookUpTransfer(asked),
        asks: ['GET', `/${direction}s/${asked.token}`],
        definite: [{ status: 'succeeded' }, ...ended, unknown],
        unreadable: [issued, ...strange],
        answered,
      },
    ];
  }),
  {
    name: 'changeCardStatus',
    make: (network) => network.changeCardStatus(freeze),
    asks: ['POST', '/status-changes', freeze],
    definite: [{ status: 'applied' }, { status: 'refused', reason: 'refused_by_network' }],
    unreadable: [accepted, unknown, { status: 'refused' }, ...strange],
    answered: (statusChange, token = freeze.token) => ({ token, statusChange }),
  },
  {
    name: 'revealCard',
    make: (network) => network.revealCard({ cardId: 'card_1', networkCardId: 'sim/1' }),
    asks: ['GET', '/cards/sim%2F1/details'],
    definite: [details],
    unreadable: wrongDetails.map((wrong) => ({ ...details, ...wrong })),
    answered: (details, networkCardId = 'sim/1') => ({ networkCardId, details }),
  },
];

const says = (body: unknown, status = 200): RequestListener => {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return (_request, response) => response.writeHead(status, { 'content-type': 'application/json' }).end(text);
};

/** Makes each call once at a network that behaves like this, and returns the results. */
async function ask(
  calls: readonly Call[],
  network: RequestListener,
): Promise<PromiseSettledResult<unknown>[]> {
  const server = await listenOnLoopback(network);
  const client = createSimulatedClient({
    url: server.url,
    bearerToken: 'bearer-secret',
    keyLifetimeMs: 72_000_000,
  });
  try {
    return await Promise.allSettled(calls.map((call) => call.make(client)));
  } finally {
    await client.close();
    await server.close();
  }
}

function assertUnavailable(result: PromiseSettledResult<unknown> | undefined, message: RegExp): void {
  assert.ok(result?.status === 'rejected');
  const error: unknown = result.reason;
  assert.ok(error instanceof CardNetworkUnavailable, String(error));
  assert.match(error.message, message);
  assert.equal(error.cause, undefined);
  assert.doesNotMatch(error.message, /Ada|Lovelace|bearer-secret|leaked|[0-9]{12}/);
}

/** What it does when answers are lost or broken is in test/issuers/conformance.ts. */
describe('the HTTP client of a card network', () => {
  for (const call of CALLS) {
    it(`sends ${call.asks.slice(0, 2).join(' ')}, hands on each answer, and drops fields that it does not know`, async () => {
      for (const answer of call.definite) {
        const seen: unknown[] = [];
        const [result] = await ask([call], async (request, response) => {
          const body = await text(request);
          assert.equal(request.headers.authorization, 'Bearer bearer-secret');
          seen.push(request.method, request.url, ...(body === '' ? [] : [JSON.parse(body)]));
          says(call.answered({ ...answer, leaked: '4242424242424242' }))(request, response);
        });
        assert.deepEqual(result, { status: 'fulfilled', value: answer });
        assert.deepEqual(seen, call.asks);
      }
    });

    it(`takes nothing from ${call.name} that has another shape, or is about another token or card`, async () => {
      for (const answer of call.unreadable) {
        const [result] = await ask([call], says(call.answered(answer)));
        assertUnavailable(result, /unexpected shape/);
      }
      const [result] = await ask([call], says(call.answered(call.definite[0] ?? {}, 'another')));
      assertUnavailable(result, /another token or card/);
    });
  }

  const indefinite: Record<string, [RequestListener, RegExp]> = {
    'is not JSON': [says('leaked: <html>'), /not JSON/],
    'is JSON but not an object': [says([1, 2]), /unexpected shape \(body\)/],
    'is an empty object': [says({}), /unexpected shape \(\w+, \w+\)/],
    'is larger than 64 KiB': [says(`"${'leaked'.repeat(20_000)}"`), /no response/],
    'hangs in the middle': [
      (_request, response) => response.writeHead(200).write('{'),
      /no response \(TimeoutError\)/,
    ],
    'is a redirect': [
      (_request, response) => response.writeHead(307, { location: 'http://127.0.0.1:9/' }).end(),
      /answered 307/,
    ],
    'is 400': [says('leaked', 400), /answered 400; .*BIN/],
    'is 401': [says('leaked', 401), /answered 401; .*secrets/],
    'is 404': [says('leaked', 404), /answered 404; .*no such card/],
    'is 409': [says('leaked', 409), /answered 409; .*look it up/],
    'is 503': [says('leaked', 503), /answered 503; ask again/],
  };
  for (const [name, [network, message]] of Object.entries(indefinite)) {
    it(`reports the network as unavailable when an answer ${name}`, async () => {
      for (const result of await ask(CALLS, network)) assertUnavailable(result, message);
    });
  }
});
