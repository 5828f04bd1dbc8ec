import { buffer } from 'node:stream/consumers';
import { NetworkCallback } from '../../../adapters/card-network/wire.ts';
import { verifyCallback } from '../../../crypto/callback-signature.ts';
import { listenOnLoopback } from './listen-on-loopback.ts';

export interface CallbackReceiver {
  url: string;
  /** Tokens of the callbacks that came, in order, taken or not. */
  tokens: string[];
  /** What it answers from now on. */
  status: number;
  close(): Promise<void>;
}

/** Receives the network's callbacks as the API will: one that is not signed or not of the agreed shape fails it. */
export async function startCallbackReceiver(secret: string): Promise<CallbackReceiver> {
  const tokens: string[] = [];
  const server = await listenOnLoopback(async (request, response) => {
    const body = await buffer(request);
    const signature = request.headers['x-network-signature'];
    if (typeof signature !== 'string' || !verifyCallback(body, signature, secret)) tokens.push('forged');
    else tokens.push(NetworkCallback.parse(JSON.parse(body.toString())).token);
    response.writeHead(receiver.status).end();
  });
  const receiver: CallbackReceiver = {
    url: `${server.url}/callbacks`,
    tokens,
    status: 204,
    close: server.close,
  };
  return receiver;
}
