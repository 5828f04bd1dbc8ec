import type { KeyObject } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { Agent } from 'undici';
import type { Orm } from '../../db/orm.ts';
import { asService } from '../../process/working-for.ts';
import { simulatedCardKey, simulatedNetworkCredentials } from './credentials.ts';
import { networkApi } from './network-api.ts';
import { type CallbackOptions, sendDueCallbacks } from './send-callbacks.ts';

export interface SimulatedNetworkOptions {
  orm: Orm;
  /** Where callbacks are posted to; null where other hosts do that. */
  callbackUrl: string | null;
  /** 32 bytes each, the same in every host, the current one first; one stays for as long as its cards live. */
  secrets: readonly [KeyObject, ...KeyObject[]];
  /** 0, the default: a free one. */
  port?: number;
  logger: Logger;
}

export interface RunningSimulatedNetwork {
  /** `http://127.0.0.1:<port>` */
  url: string;
  /** Takes no more requests, ends what is under way, within 5 s. The database stays open. */
  stop(): Promise<void>;
}

/**
 * Runs the simulated card network (operations.md, "Simulated network, live mode") on loopback. All it knows is in
 * PostgreSQL: any number of processes may run it at once or one after the other, and together they are one network.
 */
export async function startSimulatedNetwork(
  options: SimulatedNetworkOptions,
): Promise<RunningSimulatedNetwork> {
  const { orm, logger, callbackUrl } = options;
  const { bearerToken, callbackSecret } = simulatedNetworkCredentials(options.secrets[0]);
  const [current, ...others] = options.secrets;
  const cardKeys = [simulatedCardKey(current), ...others.map(simulatedCardKey)] as const;
  const api = networkApi({ orm, bearerToken, cardKeys, logger });
  // Longer than its clients keep a connection, so that none is closed under a request.
  const server = createServer({ keepAliveTimeout: 20_000 }, (request, response) =>
    asService('simulated network', () => api(request, response)),
  );
  await listen(server, options.port ?? 0);

  const stopping = new AbortController();
  const agent = new Agent();
  const callbacks =
    callbackUrl !== null && keepSending({ orm, callbackUrl, callbackSecret, agent, logger }, stopping.signal);
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: async () => {
      stopping.abort();
      await Promise.all([close(server), callbacks]);
      await agent.close();
    },
  };
}

async function keepSending(options: CallbackOptions, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      if ((await sendDueCallbacks(options)) === 0) await pause(250, signal);
    } catch (error) {
      options.logger.error({ err: error }, 'simulated network: cannot send callbacks; check PostgreSQL');
      await pause(1_000, signal);
    }
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch((error) => {
    if (!signal.aborted) throw error;
  });
}

async function listen(server: Server, port: number): Promise<void> {
  server.listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch (error) {
    throw new Error(`the simulated network can't listen on port ${port}: free it, or choose another`, {
      cause: error,
    });
  }
}

async function close(server: Server): Promise<void> {
  const impatience = setTimeout(() => server.closeAllConnections(), 5_000);
  await new Promise((resolve) => server.close(resolve));
  clearTimeout(impatience);
}
