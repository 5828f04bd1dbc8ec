import { Agent, request } from 'undici';
import type { z } from 'zod';
import { currentWork } from '../../platform/process/work-context.ts';
import { type CardNetwork, CardNetworkUnavailable } from '../card-network.ts';
import { describeFailure } from '../issuer-http.ts';
import { checkAge, type KeyOptions } from '../key-lifetime.ts';
import {
  DetailsResponse,
  FoundCard,
  IssuanceResponse,
  ListedCards,
  ListedMovements,
  LookUpResponse,
  StatusChangeResponse,
  TRANSFER_PATHS,
  TransferLookUpResponse,
  TransferResponse,
} from './wire.ts';

interface SimulatedClientOptions extends KeyOptions {
  /** The network's base URL, without a slash at the end. */
  url: string;
  bearerToken: string;
  /** How long the network may take for an answer. */
  timeoutMs?: number;
}

/** The client of the simulated network's HTTP API. `close` closes its connections. */
export function createSimulatedClient(
  options: SimulatedClientOptions,
): CardNetwork & { close(): Promise<void> } {
  const agent = new Agent({ keepAliveTimeout: 4_000, maxResponseSize: 65_536 });

  const post = async <Body extends { token: string }>(
    path: string,
    body: { token: string },
    shape: z.ZodType<Body>,
  ) => {
    const answer = await receive('POST', path, body);
    return read(answer, shape, ({ token }) => token === body.token);
  };

  const act: typeof post = async (path, body, shape) => {
    // As with issuers, which forget keys.
    checkAge(body.token, options);
    return post(path, body, shape);
  };

  const lookUp = async <Body extends { token: string }>(
    path: string,
    token: string,
    shape: z.ZodType<Body>,
  ) => {
    const answer = await receive('GET', `${path}/${encodeURIComponent(token)}`);
    return read(answer, shape, (body) => body.token === token);
  };

  async function* list<Entry extends { token: string }>(
    path: string,
    since: Date,
    shape: z.ZodType<{ data: Entry[] }>,
  ): AsyncIterable<Entry> {
    for (let after = ''; ; ) {
      const page = await receive(
        'GET',
        `${path}?since=${since.toISOString()}&after=${encodeURIComponent(after)}`,
      );
      const { data } = read(page, shape, () => true);
      yield* data;
      const last = data.at(-1);
      if (last === undefined) return;
      after = last.token;
    }
  }

  /** @param isAbout whether a response belongs to its request */
  function read<Body>(answer: unknown, shape: z.ZodType<Body>, isAbout: (answer: Body) => boolean): Body {
    const parsed = shape.safeParse(answer);
    if (!parsed.success) {
      const fields = parsed.error.issues.map((issue) => issue.path.join('.') || 'body').join(', ');
      throw unavailable(
        `its response has an unexpected shape (${fields}); check what listens at its address`,
      );
    }
    if (!isAbout(parsed.data)) {
      throw unavailable('its response is about another token or card; check what listens at its address');
    }
    return parsed.data;
  }

  async function receive(method: 'GET' | 'POST', path: string, body?: object): Promise<unknown> {
    const { signal: givenUp } = currentWork();
    let status: number;
    let text: string;
    try {
      const response = await request(options.url + path, {
        method,
        dispatcher: agent,
        signal: AbortSignal.any([
          AbortSignal.timeout(options.timeoutMs ?? 5_000),
          ...(givenUp === null ? [] : [givenUp]),
        ]),
        headers: { authorization: `Bearer ${options.bearerToken}`, 'content-type': 'application/json' },
        body: body === undefined ? null : JSON.stringify(body),
      });
      status = response.statusCode;
      text = await response.body.text();
    } catch (error) {
      throw unavailable(`no response (${describeFailure(error)}); ask again with the same token`);
    }
    if (status !== 200) throw unavailable(`it answered ${status}; ${adviceFor(status)}`);
    try {
      return JSON.parse(text);
    } catch (error) {
      // A syntax error quotes the text that it could not parse, which may contain secrets.
      if (!(error instanceof SyntaxError)) throw error;
      throw unavailable('its response is not JSON; check what listens at its address');
    }
  }

  return {
    abilities: { moneyHeldBy: 'network', asksBeforeApproving: true },
    issueCard: async (asked) => (await act('/issuances', asked, IssuanceResponse)).issuance,
    lookUpIssuance: async (token) => (await lookUp('/issuances', token, LookUpResponse)).issuance,
    transfer: async ({ direction, ...order }) =>
      (await act(TRANSFER_PATHS[direction], order, TransferResponse)).transfer,
    lookUpTransfer: async ({ direction, token }) =>
      (await lookUp(TRANSFER_PATHS[direction], token, TransferLookUpResponse)).transfer,
    changeCardStatus: async (asked) =>
      (await post('/status-changes', asked, StatusChangeResponse)).statusChange,
    revealCard: async ({ networkCardId }) => {
      const answer = await receive('GET', `/cards/${encodeURIComponent(networkCardId)}/details`);
      return read(answer, DetailsResponse, (body) => body.networkCardId === networkCardId).details;
    },
    // It counts no balances, and a block gives the card's money back by itself.
    trueUp: async () => ({ status: 'succeeded' }),
    listCards: (since) => list('/cards', since, ListedCards),
    async *listMovements(since) {
      for await (const movement of list('/movements', since, ListedMovements)) {
        yield { networkMovementId: movement.token, ...movement };
      }
    },
    async readCard(networkCardId) {
      const answer = await receive('GET', `/cards/${encodeURIComponent(networkCardId)}`);
      return read(answer, FoundCard, (body) => body.networkCardId === networkCardId).card;
    },
    // It has none of its own: operators and tests send them.
    async *listPayments() {},
    readPayment: async () => null,
    snapshotOf: () => null,
    readTransfer: async () => null,
    checkSetUp: async () => [],
    close: () => agent.close(),
  };
}

function unavailable(what: string): CardNetworkUnavailable {
  return new CardNetworkUnavailable(`card network: ${what}`);
}

function adviceFor(status: number): string {
  if (status === 401)
    return 'this process and the network have different secrets; start both with the same one';
  if (status === 404) return 'it knows no such card, or something else listens at its address';
  if (status === 409) return 'it already has this token for a different request; look it up';
  if (status === 400)
    return 'it cannot read the request; if this is an issuance, check the product code (ASCII) and the BIN (4 to 12 digits)';
  return 'ask again with the same token';
}
