import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { providers } from 'tronweb';
import { NodeProblem } from './node-health.ts';
import { type Header, readHeader } from './read-block.ts';

/** A block is at most 2 MB, and its JSON about five times that. */
const ANSWER_LIMIT_BYTES = 16 * 1_048_576;
/** To one node at a time; others wait for their turn, within their time limit. */
const MOST_CALLS = 16;
/** How long a node that limits its callers is left alone if it does not say. */
const LIMITED_MS = 5_000;
const LONGEST_RETRY_AFTER_MS = 300_000;

/**
 * What one node is asked. Whatever goes wrong with an answer is a {@link NodeProblem}; if `signal` is aborted its reason
 * is thrown.
 */
export interface NodeApi {
  newestSolid(signal: AbortSignal): Promise<Header>;
  /** Null if it has no such solid block. */
  solidBlock(number: number, signal: AbortSignal): Promise<Header | null>;
  /** As it answered: an empty list is also what it says of a block it doesn't have. */
  solidInfos(number: number, signal: AbortSignal): Promise<unknown>;
  /** Of all blocks, solid or not, as it answered. */
  newestBlock(signal: AbortSignal): Promise<unknown>;
  block(number: number, signal: AbortSignal): Promise<unknown>;
  close(): void;
}

/** @param timeoutMs for a whole answer */
export function openNodeApi(
  urls: { full: string; solidity: string },
  apiKey: string | null,
  timeoutMs: number,
): NodeApi {
  const httpAgent = new HttpAgent({ keepAlive: true, maxSockets: MOST_CALLS });
  const httpsAgent = new HttpsAgent({ keepAlive: true, maxSockets: MOST_CALLS });
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
        signal: AbortSignal.any([signal, timeout.signal]),
        httpAgent,
        httpsAgent,
        maxContentLength: ANSWER_LIMIT_BYTES,
        // A redirect would take the key to wherever it points.
        maxRedirects: 0,
        proxy: false,
        responseType: 'text',
        transformResponse: (text: unknown) => text,
        validateStatus: () => true,
      });
      return readAnswer(response);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof NodeProblem) throw error;
      throw new NodeProblem('failing', timeout.signal.aborted ? 'timeout' : codeOf(error));
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
      httpAgent.destroy();
      httpsAgent.destroy();
    },
  };
}

/** TRON_API_KEY is TronGrid's: no other host of TRON_NODE_URLS gets to see it, and nobody on the way. */
export function keyHeaders(url: string, apiKey: string | null): Record<string, string> {
  const { protocol, hostname } = new URL(url);
  const isTronGrid = hostname === 'trongrid.io' || hostname.endsWith('.trongrid.io');
  return apiKey !== null && isTronGrid && protocol === 'https:' ? { 'TRON-PRO-API-KEY': apiKey } : {};
}

/** Of axios, which TronWeb's providers are made of. */
interface Answer {
  status?: number;
  headers?: Record<string, unknown>;
  data: unknown;
}

function readAnswer({ status, headers, data }: Answer): unknown {
  if (status === 403 || status === 429)
    throw new NodeProblem('failing', `http_${status}`, retryAfterMs(headers?.['retry-after']));
  if (status !== 200) throw new NodeProblem('failing', `http_${status}`);
  const answer = parseJson(String(data));
  // An error is a 200, too.
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

function retryAfterMs(header: unknown): number {
  const seconds = /^\d{1,6}$/.test(String(header)) ? Number(header) : 0;
  return Math.min(LONGEST_RETRY_AFTER_MS, Math.max(LIMITED_MS, seconds * 1_000));
}

/** Only what an error is called: the rest of it has the request, and so its key. */
function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  if (error.message.startsWith('maxContentLength')) return 'too_large';
  return 'code' in error && typeof error.code === 'string' ? error.code.toLowerCase() : 'no_answer';
}
