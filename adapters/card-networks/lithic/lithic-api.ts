import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { Agent, request } from 'undici';
import type { z } from 'zod';
import type { LithicConfig } from '../../../config/card-networks.ts';
import { CardNetworkUnavailable } from '../../../domain/card-network.ts';
import { currentWork } from '../../../process/work-context.ts';
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

interface Action {
  method: 'POST' | 'PATCH';
  path: string;
  body: object;
  /** The Idempotency-Key; null where Lithic takes none. */
  key: string | null;
  /** Runs after the wait for a turn, right before the request is sent, which it stops by throwing. */
  check?: () => Promise<void>;
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
 * Lithic's HTTP API, as we use it (docs/issuers.md, "Lithic"). We don't use Lithic's own client: it retries by itself, and puts bodies,
 * which have card numbers, into errors and logs.
 */
export function createLithicApi({ config, budget, logger }: LithicApiOptions): LithicApi {
  const agent = new Agent({ keepAliveTimeout: 4_000, maxResponseSize: 16_777_216 });

  async function send(
    method: 'GET' | Action['method'],
    path: string,
    turn: TurnClass,
    action?: Pick<Action, 'body' | 'key' | 'check'>,
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
          // Without a scheme.
          authorization: config.apiKey,
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
    if (status === 404) return null;
    if (status !== 200) throw unclear(status);
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
      const { status, body } = await send(method, path, 'operation', action);
      if (status === 200 || status === 201) return parse(body, shape);
      if (status !== 400 && status !== 422) throw unclear(status);
      const debuggingRequestId = Problem.safeParse(body).data?.debugging_request_id ?? null;
      logger.warn({ method, path, status, debuggingRequestId }, 'Lithic refused a request');
      return { refused: `refused_${status}` };
    },
    close: () => agent.close(),
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
