import { createServer } from 'node:http';
import { Client, Connection, defaultGrpcRetryOptions, makeGrpcRetryInterceptor } from '@temporalio/client';
import type { Logger } from 'pino';
import { verifyCallback } from '../adapters/card-network/callback-signature.ts';
import { testCardIssuer } from '../adapters/card-network/test-cards.ts';
import { simulatedNetworkCredentials } from '../adapters/simulated-network/credentials.ts';
import type { Config } from '../config.ts';
import { apiKeyHasher, simulatedNetworkSecret } from '../db/derived-keys.ts';
import { KeyRing } from '../db/key-ring.ts';
import { openOrm } from '../db/orm.ts';
import { cardsTaskQueue } from '../domain/task-queues.ts';
import { answerUnreadable } from './answer-unreadable.ts';
import { createApp } from './app.ts';
import { createAuthenticate } from './authenticate.ts';
import { createRateLimit } from './rate-limit.ts';

export interface RunningApi {
  /** Base address of the API, ending in /v1. */
  url: string;
  /** Takes no more connections, ends the requests under way, within 10 s, then closes what it opened. */
  stop(): Promise<void>;
}

/** Opens what the API needs and listens. Temporal is connected to lazily: reads work while it is away. */
export async function startApi(config: Config, logger: Logger): Promise<RunningApi> {
  const ring = new KeyRing(config.encryptionKeys);
  const orm = await openOrm({
    databaseUrl: config.databaseUrl,
    poolSize: 20,
    applicationName: 'card-issuing-api',
  });
  const connection = Connection.lazy({
    ...config.temporal.connectionOptions,
    // About a second of retries: a partner can try again for longer than a request should hang.
    interceptors: [makeGrpcRetryInterceptor(defaultGrpcRetryOptions({ maxAttempts: 4 }))],
  });
  const client = new Client({ connection, namespace: config.temporal.namespace ?? 'default' });
  const { callbackSecret } = simulatedNetworkCredentials(simulatedNetworkSecret(ring));

  const app = createApp({
    orm,
    ring,
    client,
    logger,
    taskQueue: cardsTaskQueue(config.taskQueuePrefix),
    cardCreationWaitMs: config.cardCreationWaitMs,
    issuanceDeadlineMs: config.issuanceDeadlineMs,
    liveNetworkConfigured: config.cardNetwork !== 'none',
    issueTestCard: testCardIssuer(ring),
    authenticate: createAuthenticate(orm, apiKeyHasher(ring)),
    rateLimit: createRateLimit({ perSecond: config.rateLimitPerSecond, burst: config.rateLimitBurst }),
    verifyCallback: (body, signature) => verifyCallback(body, signature, callbackSecret),
  });
  const answer = app.callback();
  // Node would answer a missing Host and an unknown Expect by itself, without the error body.
  const server = createServer(
    { requestTimeout: 60_000, keepAliveTimeout: 75_000, requireHostHeader: false },
    answer,
  );
  server.on('checkExpectation', answer);
  server.on('clientError', answerUnreadable);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(config.port, config.host, resolve);
  });

  return {
    url: `http://${config.host}:${config.port}/v1`,
    stop: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeIdleConnections();
      const impatience = setTimeout(() => server.closeAllConnections(), 10_000);
      await closed;
      clearTimeout(impatience);
      await connection.close();
      await orm.close();
    },
  };
}
