import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import type { z } from 'zod';
import { retryAfterMs } from '../platform/process/retry-after.ts';
import { currentWork } from '../platform/process/work-context.ts';
import { CardNetworkUnavailable } from './card-network.ts';
import type { RequestBudget, TurnClass } from './request-budget.ts';

/** A request to an issuer's HTTP API. */
export interface IssuerRequest {
  method: 'GET' | 'POST' | 'PATCH';
  path: string;
  /** Null for a GET. */
  body: object | null;
  /** The Idempotency-Key; null where the issuer takes none. */
  key: string | null;
  /** Null if it has its turn already. */
  turn: TurnClass | null;
  /**
   * Called right before it is sent, after the wait for its turn. It throws if it must not be sent any more.
   */
  check?(): Promise<void>;
}

export interface IssuerHttp {
  /** @throws CardNetworkUnavailable if there is no answer in time, or it is not JSON */
  send(asked: IssuerRequest): Promise<{ status: number; body: unknown }>;
  /** Takes the turns of several requests, which are then sent without one. @throws TurnMissed */
  takeTurns(turn: TurnClass, requests: number): Promise<void>;
  close(): Promise<void>;
}

/**
 * Sends requests to an issuer, each in its turn of the installation's rate limit, and once: whoever asks
 * decides what is asked again (docs/issuers.md).
 * @param options.issuer its name, for error messages
 * @param options.authorization the header
 */
export function createIssuerHttp({
  issuer,
  baseUrl,
  authorization,
  budget,
}: {
  issuer: string;
  baseUrl: string;
  authorization: string;
  budget: RequestBudget;
}): IssuerHttp {
  const agent = new Agent({ keepAliveTimeout: 4_000, maxResponseSize: 16_777_216 });
  return {
    async send({ method, path, body, key, turn, check }) {
      const { signal: givenUp } = currentWork();
      if (turn !== null) await budget.takeTurn(turn, givenUp);
      await check?.();
      let status: number;
      let waitMs: number | null;
      let text: string;
      try {
        const response = await request(baseUrl + path, {
          method,
          dispatcher: agent,
          signal: AbortSignal.any([AbortSignal.timeout(5_000), ...(givenUp === null ? [] : [givenUp])]),
          headers: {
            authorization,
            'content-type': 'application/json',
            ...(key !== null && { 'idempotency-key': key }),
          },
          body: body === null ? null : JSON.stringify(body),
        });
        status = response.statusCode;
        waitMs = retryAfterMs(response.headers['retry-after']);
        text = await response.body.text();
      } catch (error) {
        throw new CardNetworkUnavailable(`${issuer}: no response (${describeFailure(error)})`);
      }
      if (status === 429) {
        await budget.noteRetryAfter(Math.max(waitMs ?? 0, 1_000));
      }
      try {
        return { status, body: JSON.parse(text) };
      } catch (error) {
        // A syntax error quotes the text that it could not parse, which may contain secrets.
        if (!(error instanceof SyntaxError)) throw error;
        throw new CardNetworkUnavailable(`${issuer}: it answered ${status}, which is not JSON`);
      }
    },
    takeTurns: (turn, requests) => budget.takeTurn(turn, currentWork().signal, requests),
    close: () => agent.close(),
  };
}

/**
 * Why a request got no response: only the error's code or name, because its message may quote the request.
 */
export function describeFailure(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown error';
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name;
}

/**
 * What an issuer answered, in the shape that it should have.
 * @throws CardNetworkUnavailable if it has another. It names the fields, and not what they hold.
 */
export function parseAnswer<Body>(issuer: string, body: unknown, shape: z.ZodType<Body>): Body {
  const parsed = shape.safeParse(body);
  if (parsed.success) return parsed.data;
  const fields = parsed.error.issues.map((issue) => issue.path.join('.') || 'body').slice(0, 10);
  throw new CardNetworkUnavailable(`${issuer}: its answer has an unexpected shape (${fields.join(', ')})`);
}

/** How long to wait before a read is repeated, twice at most. Classes that are not here read once. */
const PAUSES_MS: Partial<Record<TurnClass, number>> = {
  // A cardholder waits, for 2 s in all.
  authorization: 0,
  // Without the answer, it would have to begin again.
  reconciliation: 1_000,
};

/** Reads, and for some classes again if there is no answer, each time in its turn. */
export async function readPersistently<Found>(turn: TurnClass, read: () => Promise<Found>): Promise<Found> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await read();
    } catch (error) {
      const pauseMs = PAUSES_MS[turn];
      if (!(error instanceof CardNetworkUnavailable) || pauseMs === undefined || attempt === 3) throw error;
      await sleep(pauseMs, undefined, { signal: currentWork().signal ?? undefined }).catch(() => {
        throw error;
      });
    }
  }
}
