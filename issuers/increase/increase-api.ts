import type { Logger } from 'pino';
import { z } from 'zod';
import type { IncreaseConfig } from '../../platform/config/card-networks.ts';
import { CardNetworkUnavailable } from '../card-network.ts';
import {
  createIssuerHttp,
  type IssuerHttp,
  type IssuerRequest,
  parseAnswer,
  readPersistently,
} from '../issuer-http.ts';
import type { RequestBudget, TurnClass } from '../request-budget.ts';
import { Problem } from './wire.ts';

export interface IncreaseApiOptions {
  config: IncreaseConfig;
  budget: RequestBudget;
  logger: Logger;
}

/** Increase's definite no: the type of its error. It made nothing. */
export interface Refusal {
  refused: string;
}

interface Action extends IssuerRequest {
  method: 'POST' | 'PATCH';
  body: object;
}

export interface IncreaseApi extends Pick<IssuerHttp, 'takeTurns'> {
  /** @throws CardNetworkUnavailable if there is no such object, or no definite answer */
  get<Body>(path: string, turn: TurnClass, shape: z.ZodType<Body>): Promise<Body>;
  /** The same; null if there is no such object. */
  find<Body>(path: string, turn: TurnClass, shape: z.ZodType<Body>): Promise<Body | null>;
  /** The objects of a list, page after page. */
  list<Body>(path: string, turn: TurnClass, shape: z.ZodType<Body>): AsyncGenerator<Body>;
  /** @throws CardNetworkUnavailable unless the answer is definite */
  act<Body>(action: Action, shape: z.ZodType<Body>): Promise<Body | Refusal>;
  close(): Promise<void>;
}

/**
 * Increase's HTTP API, as we use it (docs/issuers.md, "Increase"). We don't use Increase's own client: it
 * retries by itself, invents idempotency keys, and puts bodies into errors and logs.
 */
export function createIncreaseApi({ config, budget, logger }: IncreaseApiOptions): IncreaseApi {
  const authorization = `Bearer ${config.apiKey}`;
  const http = createIssuerHttp({ issuer: 'Increase', baseUrl: config.baseUrl, authorization, budget });

  async function read<Body>(path: string, turn: TurnClass, shape: z.ZodType<Body>): Promise<Body | null> {
    const { status, body } = await http.send({ method: 'GET', path, body: null, key: null, turn });
    if (status === 404 && Problem.safeParse(body).data?.type === NOT_FOUND) return null;
    if (status !== 200) throw unclear(status, body);
    return parseAnswer('Increase', body, shape);
  }

  const find: IncreaseApi['find'] = (path, turn, shape) =>
    readPersistently(turn, () => read(path, turn, shape));

  async function get<Body>(path: string, turn: TurnClass, shape: z.ZodType<Body>): Promise<Body> {
    const found = await find(path, turn, shape);
    if (found === null) throw unclear(404, { type: NOT_FOUND });
    return found;
  }

  return {
    get,
    find,
    async *list(path, turn, shape) {
      const Page = z.object({ data: z.array(shape), next_cursor: z.string().nullable() });
      const separator = path.includes('?') ? '&' : '?';
      let cursor: string | null = null;
      do {
        const from: string = cursor === null ? '' : `${separator}cursor=${encodeURIComponent(cursor)}`;
        const page: z.infer<typeof Page> = await get(path + from, turn, Page);
        yield* page.data;
        cursor = page.next_cursor;
      } while (cursor !== null);
    },
    async act(action, shape) {
      const { status, body } = await http.send(action);
      if (status === 200 || status === 201) return parseAnswer('Increase', body, shape);
      const refused = Problem.safeParse(body).data?.type;
      const isDefinite = status === 400 || (status === 409 && DEFINITE_CONFLICTS.has(refused ?? ''));
      if (!isDefinite || refused === undefined) throw unclear(status, body);
      logger.warn(
        { method: action.method, path: action.path, status, refused },
        'Increase refused a request',
      );
      return { refused };
    },
    takeTurns: http.takeTurns,
    close: () => http.close(),
  };
}

const NOT_FOUND = 'object_not_found_error';
/** The key of another request: whoever asked looks up what was made with it. */
export const KEY_USED = 'idempotency_key_already_used_error';
/** It can't be done as things are, such as for lack of money. */
export const INVALID_OPERATION = 'invalid_operation_error';
const DEFINITE_CONFLICTS: ReadonlySet<string> = new Set([INVALID_OPERATION, KEY_USED]);

export function unavailable(what: string): CardNetworkUnavailable {
  return new CardNetworkUnavailable(`Increase: ${what}`);
}

function unclear(status: number, body: unknown): CardNetworkUnavailable {
  const type = Problem.safeParse(body).data?.type ?? 'an unknown error';
  return unavailable(`it answered ${status} (${type})${ADVICE[status] ?? ''}`);
}

const ADVICE: Record<number, string> = {
  401: '; check INCREASE_API_KEY, and that it belongs to the environment of INCREASE_BASE_URL',
  403: '; check what the API key may do',
  404: '; check the ids that are configured, and INCREASE_BASE_URL',
};
