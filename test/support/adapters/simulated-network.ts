import { createSecretKey, type KeyObject, randomBytes } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import pino from 'pino';
import { createSimulatedClient } from '../../../issuers/simulated/client.ts';
import { simulatedNetworkCredentials } from '../../../issuers/simulated/credentials.ts';
import { startSimulatedNetwork } from '../../../issuers/simulated/server/start-server.ts';
import { verifySignature } from '../../../issuers/simulated/signature.ts';
import { NetworkCallback } from '../../../issuers/simulated/wire.ts';
import { openOrm } from '../../../platform/db/orm.ts';
import { query } from '../../../platform/db/sql.ts';
import { createTestDatabase } from '../postgres.ts';
import { listenOnLoopback } from '../sockets.ts';

/** A simulated network on a database of its own, with a receiver of its callbacks. */
export async function startTestNetwork() {
  const databaseUrl = await createTestDatabase();
  const orm = await openOrm({ databaseUrl, poolSize: 40 });
  const secret = createSecretKey(randomBytes(32));
  const { callbackSecret } = simulatedNetworkCredentials(secret);
  const receiver = await startCallbackReceiver(callbackSecret);
  const logged: string[] = [];
  const logger = pino({ level: 'warn' }, { write: (line: string) => logged.push(line) });
  const closing: (() => Promise<void>)[] = [];
  /** Another host of the same network; it is stopped with the rest. */
  const host = async (secrets: [KeyObject, ...KeyObject[]] = [secret]) => {
    const server = await startSimulatedNetwork({
      orm,
      callbackUrl: receiver.url,
      secrets: () => secrets,
      logger,
    });
    const { bearerToken } = simulatedNetworkCredentials(secrets[0]);
    // A machine that does much else at the time changes no answer.
    const patience = { keyLifetimeMs: 72_000_000, timeoutMs: 60_000 };
    const network = createSimulatedClient({ url: server.url, bearerToken, ...patience });
    let stopped: Promise<void> | undefined;
    const stop = () => {
      stopped ??= network.close().then(server.stop);
      return stopped;
    };
    closing.push(stop);
    return { network, url: server.url, stop };
  };
  const first = await host();
  return {
    ...first,
    orm,
    databaseUrl,
    secret,
    receiver,
    logged,
    host,
    /** What it would complete or call back about later is due now. */
    skipDelays: async () => {
      await query(
        orm.em.fork(),
        'UPDATE simulated_network.operation SET completes_at = now() WHERE completes_at > now()',
      );
      await query(orm.em.fork(), 'UPDATE simulated_network.callback SET due_at = now() WHERE attempts = 0');
    },
    close: async () => {
      await Promise.all(closing.map((stop) => stop()));
      await receiver.close();
      await orm.close();
    },
  };
}

export type TestNetwork = Awaited<ReturnType<typeof startTestNetwork>>;

/** Receives the network's callbacks as the API will: one that is not signed or not of the agreed shape fails it. */
async function startCallbackReceiver(secret: string) {
  const tokens: string[] = [];
  const server = await listenOnLoopback(async (request, response) => {
    const body = await buffer(request);
    const signature = request.headers['x-network-signature'];
    if (typeof signature !== 'string' || !verifySignature(body, signature, secret)) tokens.push('forged');
    else tokens.push(NetworkCallback.parse(JSON.parse(body.toString())).token);
    response.writeHead(receiver.status).end();
  });
  /** With what it answers from now on. */
  const receiver = { url: `${server.url}/callbacks`, tokens, status: 204, close: server.close };
  return receiver;
}
