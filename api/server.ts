import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from '@temporalio/client';
import type { Logger } from 'pino';
import { recordKeyUses, shareActiveAccounts, shareUsage } from '../accounts/usage.ts';
import { type CardActivities, createCardActivities } from '../activities/card-activities.ts';
import { presentScan } from '../deposits/metrics.ts';
import type { DepositTerms } from '../deposits/open.ts';
import { createDatabaseMetrics } from '../exports/metrics.ts';
import type { CardNetwork } from '../issuers/card-network.ts';
import { testCardIssuer, testCardRevealer } from '../issuers/derived-cards.ts';
import { openIngress, startLiveNetwork } from '../issuers/live-network.ts';
import { takeLiveNetwork } from '../issuers/own-network.ts';
import { openRequestBudget } from '../issuers/request-budget.ts';
import { createMessageQueue } from '../payments/message-queue.ts';
import type { ApiPart } from '../platform/config/api-parts.ts';
import type { Config } from '../platform/config/service.ts';
import { cardsTaskQueue, depositsTaskQueue, webhooksTaskQueue } from '../platform/config/task-queues.ts';
import { apiKeyHasher } from '../platform/crypto/api-key.ts';
import { KeyRing } from '../platform/crypto/key-ring.ts';
import { tokenHashes } from '../platform/crypto/token.ts';
import { deriveDepositAddress } from '../platform/crypto/tron-address.ts';
import { keptKeys } from '../platform/db/kept-keys.ts';
import { API_ROLE } from '../platform/db/login.ts';
import {
  createNotifier,
  notifyDeposits,
  notifyEndpoints,
  notifyEvents,
  notifyNetworkInbox,
  TEST_CLOCK_ADVANCED,
} from '../platform/db/notifications.ts';
import { type Orm, openServiceDatabase } from '../platform/db/orm.ts';
import { openReads } from '../platform/db/report-reads.ts';
import { createProcessMetrics } from '../platform/monitoring/metrics.ts';
import { poolMetrics } from '../platform/monitoring/process-metrics.ts';
import { describeError } from '../platform/process/describe-error.ts';
import { repeat } from '../platform/process/repeat.ts';
import { startTracing, type Tracing } from '../platform/process/tracing.ts';
import { connectLazily } from '../platform/temporal/connection.ts';
import type { EagerWorker } from '../platform/temporal/eager-worker.ts';
import { TemporalPlugin } from '../platform/temporal/plugin.ts';
import { readSdkMetrics } from '../platform/temporal/sdk-metrics.ts';
import { createReadSignalSender } from '../platform/temporal/signal-sender.ts';
import { logRequests } from '../requests/log-requests.ts';
import { createApps } from './app.ts';
import { createAdmission } from './http/admission.ts';
import { createAuthenticate, type KeyUses } from './http/authenticate.ts';
import { createReadClientAddress } from './http/client-address.ts';
import { isOutage } from './http/errors.ts';
import { serveHttp } from './http/http-server.ts';
import { openLiveWork } from './http/live-work.ts';
import { ownSite } from './http/own-site.ts';
import { createRateLimit } from './http/rate-limit.ts';
import { createRequestLog } from './http/request-log.ts';
import { openResponseHints } from './http/response-hints.ts';
import { createStorageBudget } from './http/storage-budget.ts';
import { openTestClocks } from './http/test-clocks.ts';
import { countUnsent } from './http/unsent.ts';
import { createUsageBuckets } from './http/usage-buckets.ts';

/** How often the processes exchange which accounts are active. */
const ACCOUNT_EXCHANGE_MS = 500;
/** How long a request waits for its account's turn at least, however short the wait for a card is. */
const MIN_TURN_WAIT_MS = 8_000;

/** How often the processes exchange how much of their limits keys and accounts have used. */
const USAGE_EXCHANGE_MS = 250;

/** How often a process writes the log of requests: what it loses if it dies is at most that much. */
const REQUEST_LOG_MS = 500;

/** How often a process records when keys were last used. */
const KEY_USE_MS = 20_000;

export interface RunningApi {
  /** Base address of the API, ending in /v1. */
  url: string;
  /**
   * Becomes unready and waits for DRAIN_DELAY, so that load balancers send requests elsewhere. Then it
   * accepts no more connections, finishes the requests in progress within 10 s, and closes everything it
   * opened.
   */
  stop(): Promise<void>;
}

/** Starts a worker of this process, with these activities. */
export type HostWorker = (activities: CardActivities, tracing: Tracing | null) => Promise<EagerWorker>;

interface ApiOptions {
  /** Starts the worker that the process hosts. If omitted, all live work goes through the task queue. */
  hostWorker?: HostWorker | undefined;
  /** Wraps the card network, for tests that kill the process between its calls. */
  aroundNetwork?: (network: CardNetwork) => CardNetwork;
}

/**
 * How long requests may still wait for their turn after the process stops accepting; the rest of the 10 s is
 * for their work.
 */
const MAX_QUEUE_MS = 2_000;

/** Opens what the API needs and listens, then starts the worker it hosts without waiting for it. */
export async function startApi(
  config: Config,
  logger: Logger,
  options: ApiOptions = {},
): Promise<RunningApi> {
  const serves = (part: ApiPart) => config.apiParts.includes(part);
  const ring = new KeyRing(config.encryptionKeys);
  const { orm, direct, poolUsage } = await openServiceDatabase(config, logger, {
    role: API_ROLE,
    poolSize: 20,
    // The remaining connections are for the service: four settlements, API keys, health, notifications.
    shares: { accounts: 12, eachAccount: 4 },
    applicationName: 'card-issuing-api',
  });
  const tracing = await startTracing('card-issuing-api', config.tracing, logger);
  const keysAreKept = keptKeys(orm, ring);
  // If PostgreSQL is down, the process starts anyway and answers 503; the first request after that loads the
  // keys. If it is silent, each of these waits until it gives up, so they wait together.
  const [{ lists, reportReads }] = await Promise.all([
    openReads(config, orm, logger),
    // A database whose keys we don't have is another one: its live network stays as it is.
    keysAreKept()
      .then(() => takeLiveNetwork(orm, config.cardNetwork))
      .catch((error: unknown) => {
        if (!isOutage(error)) throw error;
      }),
  ]);
  const plugin = new TemporalPlugin({ codecKeys: config.codecKeys, logger, tracing });
  const connection = connectLazily(config.temporal.connectionOptions, plugin);
  const client = new Client({ connection, namespace: config.temporal.namespace ?? 'default' });

  const budget = openRequestBudget(config, orm, logger);
  const live = await startLiveNetwork({
    // A process that only takes the network's requests sends it none.
    cardNetwork: serves('partner') || serves('reveal') ? config.cardNetwork : 'none',
    config,
    // The worker posts the messages of a network that runs in our processes.
    apiUrl: null,
    orm,
    ring,
    budget,
    logger,
  });

  const notifier = (what: string, notify: (orm: Orm) => Promise<void>) =>
    createNotifier(
      () => notify(orm),
      (error) =>
        logger.warn(
          { error: describeError(error) },
          `could not notify the worker of ${what}; it will find them on its own`,
        ),
    );
  const eventsWritten = notifier('events', notifyEvents);
  const endpointsChanged = notifier('webhook endpoints', notifyEndpoints);
  const depositsChanged = notifier('deposits', notifyDeposits);
  const inboxFilled = notifier('what has changed at the card network', notifyNetworkInbox);

  const admission = createAdmission({
    accountConcurrency: config.accountConcurrency,
    maxWaitMs: Math.max(MIN_TURN_WAIT_MS, config.cardCreationWaitMs),
    maxTurnMs: 100,
    maxStartMs: 1_000,
  });

  const usage = createUsageBuckets();
  const usageExchange = repeat('adding up what the processes count', USAGE_EXCHANGE_MS, logger, () =>
    usage.exchange((usedMs) => shareUsage(orm, usedMs)),
  );
  const rateLimit = createRateLimit(
    { perSecond: config.rateLimitPerSecond, burst: config.rateLimitBurst },
    usage,
  );

  const keyUses: KeyUses = new Map();
  const useRecords = repeat('recording when keys were last used', KEY_USE_MS, logger, () =>
    recordKeyUses(orm, keyUses),
  );

  const storage = createStorageBudget({ bytesPerDay: config.storedBytesPerDay }, usage);
  const requestLog = createRequestLog(storage);
  const requestWrites = repeat('writing the log of requests', REQUEST_LOG_MS, logger, () =>
    requestLog.write((rows) => logRequests(orm, rows)),
  );

  const processId = randomUUID();
  const accountExchange = repeat(
    'telling the processes which accounts are active',
    ACCOUNT_EXCHANGE_MS,
    logger,
    () => admission.exchange((accounts) => shareActiveAccounts(orm, processId, accounts)),
  );

  const liveNetwork = live.network && (options.aroundNetwork?.(live.network) ?? live.network);
  const operations = {
    orm,
    ring,
    liveNetwork,
    liveNetworkConfigured: live.network !== null,
    spendingControlsEnforced: live.network?.abilities.asksBeforeApproving ?? true,
    issuanceDeadlineMs: config.issuanceDeadlineMs,
    topUpDeadlineMs: config.topUpDeadlineMs,
    withdrawalDeadlineMs: config.withdrawalDeadlineMs,
    authorizationTtlMs: config.authorizationTtlMs,
  };
  const testClocks = openTestClocks(orm, logger);
  const responseHints = openResponseHints({
    orm,
    ring,
    on: { [TEST_CLOCK_ADVANCED]: testClocks.forget },
    direct: serves('partner') ? direct : null,
    eventsWritten,
    logger,
  });
  const liveWork = openLiveWork(client, logger);

  let isStopping = false;
  const metrics = createProcessMetrics(readSdkMetrics);
  metrics.add([
    ...admission.metrics,
    ...requestLog.metrics,
    ...live.metrics,
    ...budget.metrics,
    ...poolMetrics(poolUsage),
    ...createDatabaseMetrics({ ...config, orm, tronNetwork: config.tron?.network ?? null, logger }),
  ]);
  const taskQueues = [
    cardsTaskQueue,
    webhooksTaskQueue,
    ...(config.tron === null ? [] : [depositsTaskQueue]),
  ];
  const { tron } = config;
  const apps = createApps({
    parts: config.apiParts,
    isStopping: () => isStopping,
    readClientAddress: createReadClientAddress(config.trustedProxies),
    ...operations,
    readList: lists.read,
    readReport: reportReads.read,
    reportLimits: config.reportLimits,
    responseLimits: config.responseLimits,
    metrics,
    operationsApart: config.operations !== null,
    tracing,
    checkResponses: config.checkResponses,
    responseHints,
    testClocks,
    liveWork,
    client,
    logger,
    taskQueue: cardsTaskQueue(config.taskQueuePrefix),
    taskQueues:
      serves('partner') || serves('network')
        ? taskQueues.map((queue) => queue(config.taskQueuePrefix))
        : null,
    cardCreationWaitMs: config.cardCreationWaitMs,
    webhookAllowLoopbackHttp: config.webhookAllowLoopbackHttp,
    issueTestCard: testCardIssuer(ring),
    revealTestCard: testCardRevealer(ring),
    authenticate: createAuthenticate(
      orm,
      async (secret, what) => {
        await keysAreKept();
        return what === 'api-key' ? apiKeyHasher(ring)(secret) : tokenHashes(ring, what, secret);
      },
      admission,
    ),
    site: ownSite(config.publicUrl),
    usage,
    keyUses,
    rateLimit,
    admission,
    storage,
    requestLog,
    unsent: countUnsent(config.responseLimits),
    eventsWritten,
    endpointsChanged,
    readScan: tron && (() => presentScan(orm, tron.network)),
    depositTerms: depositTerms(config),
    depositsChanged,
    messages: createMessageQueue(orm, eventsWritten),
    cardNetwork: config.cardNetwork,
    inboxFilled,
    // Another process has not read the secrets that the network signs with.
    ingress: openIngress(serves('network') ? config.cardNetwork : 'none', {
      config,
      orm,
      ring,
      budget,
      logger,
    }),
  });
  const servers = [await serveHttp(apps.api, config, 'PORT')];
  if (config.operations !== null)
    servers.push(await serveHttp(apps.operations, config.operations, 'OPERATIONS_PORT'));
  const { hostWorker } = options;
  if (hostWorker !== undefined && serves('partner')) {
    const activities = createCardActivities({
      ...operations,
      logger,
      ...responseHints.reported,
      signalSender: createReadSignalSender(client),
    });
    liveWork.host(() => hostWorker(activities, tracing));
  }

  return {
    url: `http://${config.host}:${config.port}/v1`,
    stop: async () => {
      isStopping = true;
      for (const server of servers) server.drain();
      await sleep(config.drainDelayMs);
      // Refuse the requests that are still waiting for their turn, rather than cut them off later.
      const impatience = setTimeout(() => admission.stop(), MAX_QUEUE_MS);
      for (const server of servers) await server.stop();
      clearTimeout(impatience);
      await usageExchange.stop();
      await useRecords.stop();
      await recordKeyUses(orm, keyUses).catch((error) => {
        logger.warn({ error: describeError(error) }, 'could not record when keys were last used');
      });
      await requestWrites.stop();
      await requestLog
        .write((rows) => logRequests(orm, rows))
        .catch((error) => {
          logger.warn({ error: describeError(error) }, 'could not write the last requests to their log');
        });
      await accountExchange.stop();
      await liveWork.stop();
      await live.stop();
      await responseHints.stop();
      await connection.close();
      await lists.close();
      await reportReads.close();
      await orm.close();
      await tracing?.stop();
    },
  };
}

/** The terms of new deposits; null if this installation takes none. */
function depositTerms({ tron, depositAddressTtlMs }: Config): DepositTerms | null {
  if (tron === null || tron.xpub === null) return null;
  const { network, usdtContract, xpub } = tron;
  const deriveAddress = (index: number) => deriveDepositAddress(xpub, index);
  return { network, usdtContract, addressTtlMs: depositAddressTtlMs, deriveAddress };
}
