import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { Agent, request } from 'undici';
import { z } from 'zod';
import type { IncreaseConfig } from '../../../config/card-networks.ts';
import { CardNetworkUnavailable } from '../../../domain/card-network.ts';
import { currentWork } from '../../../process/work-context.ts';
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

interface Action {
  method: 'POST' | 'PATCH';
  path: string;
  body: object;
  /** The Idempotency-Key; null where Increase takes none. */
  key: string | null;
  turn: TurnClass;
  /** Called right before it is sent, after the wait for its turn. It throws if it must not be sent any more. */
  check?(): Promise<void>;
}

export interface IncreaseApi {
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
 * Increase's HTTP API, as we use it (docs/issuers.md, "Increase"). We don't use Increase's own client: it retries by itself, invents
 * idempotency keys, and puts bodies into errors and logs.
 */
export function createIncreaseApi({ config, budget, logger }: IncreaseApiOptions): IncreaseApi {
  const agent = new Agent({ keepAliveTimeout: 4_000, maxResponseSize: 16_777_216 });

  async function send(
    method: 'GET' | Action['method'],
    path: string,
    turn: TurnClass,
    action?: Action,
  ): Promise<{ status: number; body: unknown }> {
    const { signal: givenUp } = currentWork();
    await budget.takeTurn(turn, givenUp);
    await action?.check?.();
    let status: number;
    let retryAfter: string | undefined;
    let text: string;
    try {
      const response = await request(config.baseUrl + path, {
        method,
        dispatcher: agent,
        signal: AbortSignal.any([AbortSignal.timeout(5_000), ...(givenUp === null ? [] : [givenUp])]),
        headers: {
          authorization: `Bearer ${config.apiKey}`,
          'content-type': 'application/json',
          ...(action?.key != null && { 'idempotency-key': action.key }),
        },
        body: action === undefined ? null : JSON.stringify(action.body),
      });
      status = response.statusCode;
      retryAfter = response.headers['retry-after']?.toString();
      text = await response.body.text();
    } catch (error) {
      throw unavailable(`no response (${describeFailure(error)})`);
    }
    if (status === 429) {
      const seconds = Number(retryAfter ?? '1');
      await budget.noteRetryAfter(Number.isFinite(seconds) ? Math.max(seconds, 1) * 1_000 : 1_000);
    }
    try {
      return { status, body: JSON.parse(text) };
    } catch (error) {
      // A syntax error quotes the text that it could not parse, which may contain secrets.
      if (!(error instanceof SyntaxError)) throw error;
      throw unavailable(`it answered ${status}, which is not JSON`);
    }
  }

  async function read<Body>(path: string, turn: TurnClass, shape: z.ZodType<Body>): Promise<Body | null> {
    const { status, body } = await send('GET', path, turn);
    if (status === 404 && Problem.safeParse(body).data?.type === NOT_FOUND) return null;
    if (status !== 200) throw unclear(status, body);
    return parse(body, shape);
  }

  /** A reconciliation would have to begin again without this answer, so it asks three times, each in its turn. */
  async function find<Body>(path: string, turn: TurnClass, shape: z.ZodType<Body>): Promise<Body | null> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await read(path, turn, shape);
      } catch (error) {
        if (!(error instanceof CardNetworkUnavailable) || turn !== 'reconciliation' || attempt === 3)
          throw error;
        await sleep(1_000, undefined, { signal: currentWork().signal ?? undefined });
      }
    }
  }

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
      const { status, body } = await send(action.method, action.path, action.turn, action);
      if (status === 200 || status === 201) return parse(body, shape);
      const refused = Problem.safeParse(body).data?.type;
      const isDefinite = status === 400 || (status === 409 && DEFINITE_CONFLICTS.has(refused ?? ''));
      if (!isDefinite || refused === undefined) throw unclear(status, body);
      logger.warn(
        { method: action.method, path: action.path, status, refused },
        'Increase refused a request',
      );
      return { refused };
    },
    close: () => agent.close(),
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

function parse<Body>(body: unknown, shape: z.ZodType<Body>): Body {
  const parsed = shape.safeParse(body);
  if (parsed.success) return parsed.data;
  const fields = parsed.error.issues.map((issue) => issue.path.join('.') || 'body').slice(0, 10);
  throw unavailable(`its answer has an unexpected shape (${fields.join(', ')})`);
}

/** Only the error's code or name, because its message may quote the request. */
function describeFailure(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown error';
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name;
}
