import { pipeline } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { providers } from 'tronweb';
import { Agent, request } from 'undici';
import { retryAfterMs } from '../../platform/process/retry-after.ts';
import { NodeProblem } from './node-health.ts';
import { type Header, readHeader } from './read-block.ts';
import { splitList } from './split-list.ts';

const MIB = 1_048_576;
/**
 * A block has at most 2 MB, and its JSON about five times as much. Anybody can make one of eleven times as much
 * (docs/decisions/tron-nodes.md).
 */
const MAX_ANSWER_BYTES = 24 * MIB;
/** What calls return and log is only in the infos (docs/decisions/tron-nodes.md). */
const MAX_INFOS_BYTES = 1_024 * MIB;
const MAX_INFO_BYTES = 64 * MIB;
/**
 * JSON.parse makes up to fifty times as many bytes of brackets, which a hostile node can send. A block has no more
 * of them than its 2 MB has bytes.
 */
const MAX_BLOCK_BRACKETS = 2_000_000;
/** Infos have at least fifty characters for each. */
const MAX_INFO_BRACKETS = { few: 1_000, eachCharacters: 16 };
/** The timeout is for as many bytes as this, and a long answer takes no more than 12 of them. */
const TIMEOUT_BYTES = 16 * MIB;
const MAX_TIMEOUTS = 12;
/** The codes that a node's state uses for these errors. */
const CODES: Record<string, string> = {
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
  /** The infos of a block as they arrive. A node also returns none for a block that it doesn't have. */
  solidInfos(number: number, signal: AbortSignal): AsyncIterable<unknown>;
  /** The raw response for the newest block, solid or not. */
  newestBlock(signal: AbortSignal): Promise<unknown>;
  block(number: number, signal: AbortSignal): Promise<unknown>;
  close(): void;
}

/** @param timeoutMs for a whole response; for a longer one than 16 MB, for each 16 MB of it */
export function openNodeApi(
  urls: { full: string; solidity: string },
  apiKey: string | null,
  timeoutMs: number,
): NodeApi {
  const agent = new Agent({
    connections: MAX_CALLS,
    keepAliveTimeout: 4_000,
    // Each call has its own timeout, which covers the whole response.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { timeout: timeoutMs },
  });
  const provider = (url: string) => new providers.HttpProvider(url, 0, '', '', keyHeaders(url, apiKey));
  const full = provider(urls.full);
  const solidity = urls.solidity === urls.full ? full : provider(urls.solidity);

  /** The bytes of a response, uncompressed. */
  async function* receive(
    { instance }: typeof full,
    { path, question, maxBytes }: { path: string; question: object; maxBytes: number },
    signal: AbortSignal,
  ): AsyncGenerator<Buffer> {
    signal.throwIfAborted();
    const slow = new AbortController();
    const timer = setTimeout(() => slow.abort(), timeoutMs);
    const timeout = AbortSignal.any([slow.signal, AbortSignal.timeout(timeoutMs * MAX_TIMEOUTS)]);
    try {
      const response: Answer = await instance.request({
        method: 'post',
        url: path,
        data: question,
        adapter: (asked: Asked) => carry(asked, agent, AbortSignal.any([signal, timeout])),
        transformResponse: (body: unknown) => body,
      });
      let bytes = 0;
      for await (const chunk of response.data) {
        if (bytes % TIMEOUT_BYTES > (bytes + chunk.length) % TIMEOUT_BYTES) timer.refresh();
        bytes += chunk.length;
        if (bytes > maxBytes) throw new NodeProblem('failing', 'too_large');
        yield chunk;
      }
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof NodeProblem) throw error;
      throw new NodeProblem('failing', timeout.aborted ? 'timeout' : errorCode(error));
    } finally {
      clearTimeout(timer);
    }
  }

  async function ask(provider: typeof full, path: string, question: object, signal: AbortSignal) {
    const chunks: Buffer[] = [];
    const asked = { path, question, maxBytes: MAX_ANSWER_BYTES };
    for await (const chunk of receive(provider, asked, signal)) chunks.push(chunk);
    return readAnswer(Buffer.concat(chunks).toString(), MAX_BLOCK_BRACKETS);
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
    solidInfos: async function* (number, signal) {
      const path = '/walletsolidity/gettransactioninfobyblocknum';
      const asked = { path, question: { num: number }, maxBytes: MAX_INFOS_BYTES };
      for await (const { text, isItem } of splitList(receive(solidity, asked, signal), MAX_INFO_BYTES)) {
        const maxBrackets = MAX_INFO_BRACKETS.few + text.length / MAX_INFO_BRACKETS.eachCharacters;
        const info = isItem ? parseJson(text, maxBrackets) : readAnswer(text, maxBrackets);
        if (isItem) yield info;
      }
    },
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
  data: AsyncIterable<Buffer>;
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
  const {
    statusCode,
    headers: answered,
    body,
  } = await request(baseURL + url, {
    method: 'POST',
    body: data,
    dispatcher: agent,
    signal,
    headers: { ...headers.toJSON(), 'accept-encoding': 'gzip' },
  });
  if (statusCode !== 200) {
    await body.dump({ limit: MIB, signal });
    const isLimited = statusCode === 403 || statusCode === 429;
    const waitMs = isLimited ? pauseMs(answered['retry-after']) : 0;
    throw new NodeProblem('failing', `http_${statusCode}`, waitMs);
  }
  if (answered['content-encoding'] !== 'gzip') return { data: body };
  return { data: pipeline(body, createGunzip(), () => {}) };
}

function readAnswer(text: string, maxBrackets: number): unknown {
  const answer = parseJson(text, maxBrackets);
  // Nodes report errors with status 200 too.
  if (typeof answer === 'object' && answer !== null && 'Error' in answer) {
    const isBusy = typeof answer.Error === 'string' && answer.Error.includes('lack of computing resources');
    throw new NodeProblem('failing', isBusy ? 'overloaded' : 'error_answer');
  }
  return answer;
}

function parseJson(text: string, maxBrackets: number): unknown {
  if (hasMoreBrackets(text, maxBrackets)) throw new NodeProblem('failing', 'too_large');
  try {
    return JSON.parse(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new NodeProblem('failing', text.includes('lite fullnode') ? 'lite_node' : 'not_json');
  }
}

function hasMoreBrackets(text: string, most: number): boolean {
  let left = most;
  for (let at = 0; at < text.length && left >= 0; at++) if (text[at] === '[' || text[at] === '{') left--;
  return left < 0;
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
