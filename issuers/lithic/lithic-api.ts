import type { Logger } from 'pino';
import type { z } from 'zod';
import type { LithicConfig } from '../../platform/config/card-networks.ts';
import { CardNetworkUnavailable } from '../card-network.ts';
import { createIssuerHttp, type IssuerRequest, parseAnswer, readPersistently } from '../issuer-http.ts';
import type { RequestBudget, TurnClass } from '../request-budget.ts';
import { Page, Problem } from './wire.ts';

export interface LithicApiOptions {
  config: LithicConfig;
  budget: RequestBudget;
  logger: Logger;
}

/** Lithic's definite no: `refused_` and the status. It did nothing. */
export interface Refusal {
  refused: string;
}

interface Action extends Omit<IssuerRequest, 'turn'> {
  method: 'POST' | 'PATCH';
  body: object;
}

interface LithicApi {
  /** @throws CardNetworkUnavailable if there is no such object, or no definite answer */
  get<Body>(path: string, turn: TurnClass, shape: z.ZodType<Body>): Promise<Body>;
  /** The same; null if there is no such object. */
  find<Body>(path: string, turn: TurnClass, shape: z.ZodType<Body>): Promise<Body | null>;
  /** The objects of a list, page after page. @param path with its query */
  list<Body extends { token: string }>(
    path: string,
    turn: TurnClass,
    shape: z.ZodType<Body>,
  ): AsyncGenerator<Body>;
  /** @throws CardNetworkUnavailable unless the answer is definite */
  act<Body>(action: Action, shape: z.ZodType<Body>): Promise<Body | Refusal>;
  close(): Promise<void>;
}

/**
 * Lithic's HTTP API, as we use it (docs/issuers.md, "Lithic"). We don't use Lithic's own client: it retries
 * by itself, and puts bodies, which have card numbers, into errors and logs.
 */
export function createLithicApi({ config, budget, logger }: LithicApiOptions): LithicApi {
  // The key without a scheme.
  const authorization = config.apiKey;
  const http = createIssuerHttp({ issuer: 'Lithic', baseUrl: config.baseUrl, authorization, budget });

  async function read<Body>(path: string, turn: TurnClass, shape: z.ZodType<Body>): Promise<Body | null> {
    const { status, body } = await http.send({ method: 'GET', path, body: null, key: null, turn });
    if (status === 404) return null;
    if (status !== 200) throw unclear(status);
    return parseAnswer('Lithic', body, shape);
  }

  const find: LithicApi['find'] = (path, turn, shape) =>
    readPersistently(turn, () => read(path, turn, shape));

  async function get<Body>(path: string, turn: TurnClass, shape: z.ZodType<Body>): Promise<Body> {
    const found = await find(path, turn, shape);
    if (found === null) throw unclear(404);
    return found;
  }

  return {
    get,
    find,
    async *list(path, turn, shape) {
      let from = '';
      for (;;) {
        const { data, has_more: hasMore } = await get(`${path}&page_size=100${from}`, turn, Page(shape));
        yield* data;
        const last = data.at(-1);
        if (!hasMore) return;
        if (last === undefined) throw unavailable('a page of a list is empty, and not the last one');
        from = `&starting_after=${encodeURIComponent(last.token)}`;
      }
    },
    async act(action, shape) {
      const { method, path } = action;
      const { status, body } = await http.send({ ...action, turn: 'operation' });
      if (status === 200 || status === 201) return parseAnswer('Lithic', body, shape);
      if (status !== 400 && status !== 422) throw unclear(status);
      const debuggingRequestId = Problem.safeParse(body).data?.debugging_request_id ?? null;
      logger.warn({ method, path, status, debuggingRequestId }, 'Lithic refused a request');
      return { refused: `refused_${status}` };
    },
    close: () => http.close(),
  };
}

export function unavailable(what: string): CardNetworkUnavailable {
  return new CardNetworkUnavailable(`Lithic: ${what}`);
}

function unclear(status: number): CardNetworkUnavailable {
  return unavailable(`it answered ${status}${ADVICE[status] ?? ''}`);
}

const ADVICE: Record<number, string> = {
  401: '; check LITHIC_API_KEY, and that it belongs to the environment of LITHIC_BASE_URL',
  403: '; check what the API key may do',
  404: '; it knows no such object: check LITHIC_BASE_URL',
};
