import type { KeyObject } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Logger } from 'pino';
import { Agent } from 'undici';
import type { Orm } from '../../../platform/db/orm.ts';
import { asService } from '../../../platform/process/work-context.ts';
import { simulatedCardKey, simulatedNetworkCredentials } from '../credentials.ts';
import { sendCallbacks } from './callbacks.ts';
import { networkApi } from './network-api.ts';

interface SimulatedNetworkOptions {
  orm: Orm;
  /** Where to post callbacks; null if other hosts send them. */
  callbackUrl: string | null;
  /**
   * 32 bytes each, the same in every host, the current one first. Keep each one while its cards exist. A
   * process that starts without PostgreSQL has more of them once it can read them.
   */
  secrets(): readonly [KeyObject, ...KeyObject[]];
  /** 0, the default, picks a free port. */
  port?: number;
  logger: Logger;
}

interface RunningSimulatedNetwork {
  /** `http://127.0.0.1:<port>` */
  url: string;
  /** Accepts no more requests and finishes those in progress within 5 s. The database stays open. */
  stop(): Promise<void>;
}

/**
 * Runs the simulated card network (docs/partners/testing.md) on loopback. All its state is in PostgreSQL, so
 * any number of processes can run it, concurrently or in turn, and together they are one network.
 */
export async function startSimulatedNetwork(
  options: SimulatedNetworkOptions,
): Promise<RunningSimulatedNetwork> {
  const { orm, logger, callbackUrl } = options;
  const { bearerToken, callbackSecret } = simulatedNetworkCredentials(options.secrets()[0]);
  const cardKeys = () => {
    const [current, ...others] = options.secrets();
    return [simulatedCardKey(current), ...others.map(simulatedCardKey)] as const;
  };
  const api = networkApi({ orm, bearerToken, cardKeys, logger });
  // Longer than its clients keep an idle connection, so that none is closed just as a request is sent.
  const server = createServer({ keepAliveTimeout: 20_000 }, (request, response) =>
    asService('simulated network', () => api(request, response)),
  );
  await listen(server, options.port ?? 0);

  const stopping = new AbortController();
  const agent = new Agent();
  const callbacks =
    callbackUrl !== null &&
    sendCallbacks({ orm, callbackUrl, callbackSecret, agent, logger }, stopping.signal);
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: async () => {
      stopping.abort();
      await Promise.all([close(server), callbacks]);
      await agent.close();
    },
  };
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
  const deadline = setTimeout(() => server.closeAllConnections(), 5_000);
  await new Promise((resolve) => server.close(resolve));
  clearTimeout(deadline);
}
