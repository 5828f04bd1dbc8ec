import type { IncomingMessage, ServerResponse } from 'node:http';
import { z } from 'zod';
import { addressHash } from './address.ts';
import { ClockChain } from './clock-chain.ts';
import { FAKE_USDT_CONTRACT } from './drafts.ts';
import { startFakeNode } from './fake-node.ts';

export interface LocalTron {
  url: string;
  /** The service's configuration for this node. */
  environment: Record<`TRON_${string}`, string>;
  stop(): Promise<void>;
}

/** The path that takes payments. Everything else the node serves is java-tron's API. */
export const PAY_PATH = '/dev/pay';

/**
 * m/44'/195'/0' of the mnemonic `test` ×11 + `junk`, which everybody knows: nothing on this chain has any
 * value.
 */
const XPUB =
  'xpub6BuRy7ZmkGfP2RWhoor1kWB1w9DvrtmJbFBvnC1bQ4SB5NbCHTyQYCJSXZtxDbFyHTmC7wkU2he3nYYdpZ3Vf6qUAkXSnL6RPif4BDtDEKr';

const PayRequest = z.object({
  to: z.string().refine((text) => addressHash(text) !== null, {
    error: 'the address must be a TRON address: T… with 34 characters and a correct checksum',
  }),
  amountUsdt: z
    .string()
    .regex(
      /^\d{1,15}(\.\d{1,6})?$/,
      'the amount must be a decimal with at most 6 places, for instance 25 or 25.00',
    )
    .refine((text) => Number(text) > 0, 'the amount must be more than 0'),
});
/** The answer to a payment: the block it will be in, and the block that makes that one solid. */
export const PayAnswer = z.union([
  z.object({ txId: z.string(), block: z.int(), solidBlock: z.int() }),
  z.object({ Error: z.string() }),
]);

/** The fake node of the local stack, on loopback. @param file where its chain is kept across restarts */
export async function startLocalTron({ file, port }: { file: string; port: number }): Promise<LocalTron> {
  const chain = new ClockChain(file);
  const alsoServe = (request: IncomingMessage, body: string, response: ServerResponse) => {
    if (request.url !== PAY_PATH || request.method !== 'POST') return false;
    const [status, answer] = pay(chain, request, body);
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
    return true;
  };
  const node = await startFakeNode(chain, { port, alsoServe });
  return {
    url: node.url,
    environment: {
      TRON_NETWORK: 'private',
      TRON_NODE_URLS: node.url,
      TRON_USDT_CONTRACT: FAKE_USDT_CONTRACT,
      TRON_XPUB: XPUB,
      TRON_SCAN_INTERVAL: '1s',
    },
    stop: async () => {
      await node.stop();
      chain.close();
    },
  };
}

function pay(
  chain: ClockChain,
  request: IncomingMessage,
  body: string,
): [status: number, answer: z.infer<typeof PayAnswer>] {
  // A web page can't send this type without a CORS preflight.
  if (request.headers['content-type'] !== 'application/json')
    return [415, { Error: 'the content type must be application/json' }];
  const asked = PayRequest.safeParse(parseJson(body));
  if (!asked.success) return [400, { Error: asked.error.issues.map(({ message }) => message).join('; ') }];
  const { to, amountUsdt } = asked.data;
  const [whole = '', places = ''] = amountUsdt.split('.');
  const paid = chain.pay({ to, valueMicroUsdt: BigInt(whole + places.padEnd(6, '0')) });
  return [200, { ...paid, solidBlock: paid.block + chain.solidAfterBlocks }];
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
