import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { providers } from 'tronweb';
import { Agent, request } from 'undici';
import { retryAfterMs } from '../../platform/process/retry-after.ts';
import { NodeProblem } from './node-health.ts';
import { type Header, readHeader } from './read-block.ts';

const unzip = promisify(gunzip);
/** A block has at most 2 MB, and its JSON about five times as much. */
const MAX_RESPONSE_BYTES = 16 * 1_048_576;
/** The codes that a node's state uses for these errors. */
const CODES: Record<string, string> = {
  UND_ERR_RES_EXCEEDED_MAX_SIZE: 'too_large',
  ERR_BUFFER_TOO_LARGE: 'too_large',
  UND_ERR_SOCKET: 'disconnected',
  UND_ERR_CONNECT_TIMEOUT: 'timeout',
};
/** Concurrent calls to one node. Further ones wait their turn, within their timeout. */
const MAX_CALLS = 16;
/** How long to pause for a node that rate limits us without saying for how long. */
const LIMITED_MS = 5_000;
const MAX_RETRY_AFTER_MS = 300_000;

/**
 * The calls to one node. Anything wrong with a response is thrown as a {@link NodeProblem}; if `signal` is
 * aborted, its reason is thrown.
 */
export interface NodeApi {
  newestSolid(signal: AbortSignal): Promise<Header>;
  /** Null if it has no such solid block. */
  solidBlock(number: number, signal: AbortSignal): Promise<Header | null>;
  /** The raw response. A node also returns an empty list for a block that it doesn't have. */
  solidInfos(number: number, signal: AbortSignal): Promise<unknown>;
  /** The raw response for the newest block, solid or not. */
  newestBlock(signal: AbortSignal): Promise<unknown>;
  block(number: number, signal: AbortSignal): Promise<unknown>;
  close(): void;
}

/** @param timeoutMs for a whole response */
export function openNodeApi(
  urls: { full: string; solidity: string },
  apiKey: string | null,
  timeoutMs: number,
): NodeApi {
  const agent = new Agent({
    connections: MAX_CALLS,
    keepAliveTimeout: 4_000,
    maxResponseSize: MAX_RESPONSE_BYTES,
    // Each call has its own timeout, which covers the whole response.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { timeout: timeoutMs },
  });
  const provider = (url: string) => new providers.HttpProvider(url, 0, '', '', keyHeaders(url, apiKey));
  const full = provider(urls.full);
  const solidity = urls.solidity === urls.full ? full : provider(urls.solidity);

  async function ask({ instance }: typeof full, path: string, question: object, signal: AbortSignal) {
    signal.throwIfAborted();
    const timeout = new AbortController();
    const timer = setTimeout(() => timeout.abort(), timeoutMs);
    try {
      const response: Answer = await instance.request({
        method: 'post',
        url: path,
        data: question,
        adapter: (asked: Asked) => carry(asked, agent, AbortSignal.any([signal, timeout.signal])),
        transformResponse: (text: unknown) => text,
      });
      return readAnswer(response);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof NodeProblem) throw error;
      throw new NodeProblem('failing', timeout.signal.aborted ? 'timeout' : errorCode(error));
    } finally {
      clearTimeout(timer);
    }
  }

  return {
    newestSolid: async (signal) => {
      const header = readHeader(await ask(solidity, '/walletsolidity/getnowblock', {}, signal));
      if (header === null) throw new NodeProblem('failing', 'no_blocks');
      return header;
    },
    solidBlock: async (number, signal) => {
      const header = readHeader(
        await ask(solidity, '/walletsolidity/getblockbynum', { num: number }, signal),
      );
      if (header !== null && header.number !== number) throw new NodeProblem('failing', 'wrong_block');
      return header;
    },
    solidInfos: (number, signal) =>
      ask(solidity, '/walletsolidity/gettransactioninfobyblocknum', { num: number }, signal),
    newestBlock: (signal) => ask(full, '/wallet/getnowblock', {}, signal),
    block: (number, signal) => ask(full, '/wallet/getblockbynum', { num: number }, signal),
    close: () => {
      // Pending calls are rejected; there is no need to wait for the rest.
      void agent.destroy();
    },
  };
}

/** TRON_API_KEY belongs to TronGrid: it is sent to no other host of TRON_NODE_URLS, and only over HTTPS. */
export function keyHeaders(url: string, apiKey: string | null): Record<string, string> {
  const { protocol, hostname } = new URL(url);
  const isTronGrid = hostname === 'trongrid.io' || hostname.endsWith('.trongrid.io');
  return apiKey !== null && isTronGrid && protocol === 'https:' ? { 'TRON-PRO-API-KEY': apiKey } : {};
}

/** The part of an axios request that its adapter needs. TronWeb's providers use axios. */
interface Asked {
  baseURL: string;
  url: string;
  data: string;
  headers: { toJSON(): Record<string, string> };
}
interface Answer {
  status?: number;
  headers?: Record<string, unknown>;
  data: unknown;
}

/**
 * An axios adapter that takes half the CPU time of axios' own, follows no redirects, which would leak the
 * key, and uses no proxy.
 */
async function carry(
  { baseURL, url, data, headers }: Asked,
  agent: Agent,
  signal: AbortSignal,
): Promise<Answer> {
  const response = await request(baseURL + url, {
    method: 'POST',
    body: data,
    dispatcher: agent,
    signal,
    headers: { ...headers.toJSON(), 'accept-encoding': 'gzip' },
  });
  const { statusCode: status, headers: answered, body } = response;
  if (answered['content-encoding'] !== 'gzip') return { status, headers: answered, data: await body.text() };
  const zipped = await body.arrayBuffer();
  const text = await unzip(zipped, { maxOutputLength: MAX_RESPONSE_BYTES });
  return { status, headers: answered, data: text.toString() };
}

function readAnswer({ status, headers, data }: Answer): unknown {
  if (status === 403 || status === 429)
    throw new NodeProblem('failing', `http_${status}`, pauseMs(headers?.['retry-after']));
  if (status !== 200) throw new NodeProblem('failing', `http_${status}`);
  const answer = parseJson(String(data));
  // Nodes report errors with status 200 too.
  if (typeof answer === 'object' && answer !== null && 'Error' in answer) {
    const isBusy = String(answer.Error).includes('lack of computing resources');
    throw new NodeProblem('failing', isBusy ? 'overloaded' : 'error_answer');
  }
  return answer;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new NodeProblem('failing', text.includes('lite fullnode') ? 'lite_node' : 'not_json');
  }
}

function pauseMs(header: unknown): number {
  return Math.min(MAX_RETRY_AFTER_MS, Math.max(LIMITED_MS, retryAfterMs(String(header ?? '')) ?? 0));
}

/** Only the error's code: the error itself contains the request, and so the API key. */
function errorCode(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  const code = 'code' in error && typeof error.code === 'string' ? error.code : 'no_answer';
  return CODES[code] ?? code.toLowerCase();
}
