import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Child, startChild } from '../../../dev/process/child.ts';
import type { Config } from '../../../platform/config/service.ts';
import { testWorkflowBundle } from '../stack.ts';
import { until } from '../until.ts';
import type { DeadlyStatement } from './die-at-statement.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

const folders: string[] = [];
process.once('exit', () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** For what one test's processes write; it is removed when this process ends. */
export function scratchFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'card-issuing-crash-'));
  folders.push(folder);
  return folder;
}

/** Runs a file of the repository, given from its root, in a process of its own with this configuration. */
export function startProcess(
  config: Config,
  folder: string,
  file: string,
  options: { args?: string[]; execArgv?: string[]; env?: NodeJS.ProcessEnv } = {},
): Promise<Child> {
  return startChild({
    name: file,
    command: process.execPath,
    args: [...(options.execArgv ?? []), file, ...(options.args ?? [])],
    cwd: ROOT,
    env: {
      ...environmentOf(config),
      NODE_COMPILE_CACHE: join(tmpdir(), 'card-issuing-compile-cache'),
      ...options.env,
    },
    logFile: join(folder, `${file.replaceAll('/', '-')}.log`),
  });
}

/**
 * What makes a process of {@link startProcess} or {@link startApiProcess} die at a statement with this text. It is
 * armed from its start.
 */
export function dieAt(folder: string, text: string, when: DeadlyStatement['when']) {
  const name = randomUUID();
  const armedFile = join(folder, `armed-${name}`);
  const markerFile = join(folder, `died-${name}`);
  writeFileSync(armedFile, '');
  const place: DeadlyStatement = { text, when, armedFile, markerFile };
  return {
    /** Exists once it has died there. */
    markerFile,
    execArgv: ['--import', './test/support/crash/die-at-statement.ts'],
    env: { DIE_AT_STATEMENT: JSON.stringify(place) },
  };
}

/** Starts a worker that dies at a statement. @returns a function that waits until it has */
export async function startDyingWorker(
  config: Config,
  folder: string,
  text: string,
  when: DeadlyStatement['when'],
): Promise<() => Promise<void>> {
  const { markerFile, execArgv, env } = dieAt(folder, text, when);
  const worker = await startProcess(config, folder, 'worker/main.ts', {
    execArgv,
    env: { ...env, WORKFLOW_BUNDLE: await bundleFile(folder) },
  });
  return async () => {
    assert.equal(await worker.exited, 'signal SIGKILL', worker.lastLines().join('\n'));
    assert.ok(existsSync(markerFile));
  };
}

/** Starts an API process, and returns once it answers. @param options.file production's own unless given */
export async function startApiProcess(
  config: Config,
  folder: string,
  options: { file?: string; execArgv?: string[]; env?: NodeJS.ProcessEnv } = {},
): Promise<Child> {
  const { file = 'api/main.ts', ...others } = options;
  const api = await startProcess(config, folder, file, others);
  await until('the API answers', async () => {
    const response = await fetch(`http://${config.host}:${config.port}/healthz`).catch(
      (error: Error) => error,
    );
    return !(response instanceof Error);
  });
  return api;
}

export async function kill(child: Child): Promise<void> {
  await child.stop([{ signal: 'SIGKILL', graceMs: 5_000 }]);
}

/** Writes the bundled workflows to a file, for workers that start often. */
export async function bundleFile(folder: string): Promise<string> {
  const { code } = await testWorkflowBundle();
  const file = join(folder, 'workflows.js');
  writeFileSync(file, code);
  return file;
}

export function environmentOf(config: Config): NodeJS.ProcessEnv {
  const { connectionOptions, namespace } = config.temporal;
  return {
    ...process.env,
    HOST: config.host,
    PORT: String(config.port),
    WORKER_HOST: config.worker.host,
    WORKER_PORT: String(config.worker.port),
    WORKER_QUEUES: config.worker.queues.join(','),
    DATABASE_URL: config.databaseUrl,
    DATABASE_DIRECT_URL: config.databaseDirectUrl ?? '',
    ALLOW_OWNER_LOGIN: String(config.allowOwnerLogin),
    TEMPORAL_ADDRESS: connectionOptions?.address,
    TEMPORAL_NAMESPACE: namespace,
    TASK_QUEUE_PREFIX: config.taskQueuePrefix,
    DRAIN_DELAY: `${config.drainDelayMs}ms`,
    TEMPORAL_DEPLOYMENT_NAME: config.workerVersion?.deploymentName ?? '',
    TEMPORAL_WORKER_BUILD_ID: config.workerVersion?.buildId ?? '',
    ENCRYPTION_KEYS: config.encryptionKeys
      .map(({ id, secret }) => `${id}:${Buffer.from(secret).toString('base64')}`)
      .join(','),
    CARD_NETWORK: config.cardNetwork,
    ...lithicEnvironment(config.lithic),
    // The longest that a process can be given; the test's own API may wait longer.
    CARD_CREATION_WAIT_MS: String(Math.min(config.cardCreationWaitMs, 60_000)),
    ISSUANCE_DEADLINE: `${config.issuanceDeadlineMs}ms`,
    TOPUP_DEADLINE: `${config.topUpDeadlineMs}ms`,
    WITHDRAWAL_DEADLINE: `${config.withdrawalDeadlineMs}ms`,
    WEBHOOK_RETRY_SCHEDULE: config.webhookDelaysMs.map((delayMs) => `${delayMs}ms`).join(','),
    WEBHOOK_TIMEOUT: `${config.webhookTimeoutMs}ms`,
    WEBHOOK_ALLOW_LOOPBACK_HTTP: String(config.webhookAllowLoopbackHttp),
    RATE_LIMIT_PER_SECOND: String(config.rateLimitPerSecond),
    RATE_LIMIT_BURST: String(config.rateLimitBurst),
    ACCOUNT_CONCURRENCY: String(config.accountConcurrency),
    TRUSTED_PROXIES: config.trustedProxies.map(([address, bits]) => `${address}/${bits}`).join(','),
    DEPOSIT_ADDRESS_TTL: `${config.depositAddressTtlMs}ms`,
    ...tronEnvironment(config.tron),
    ...increaseEnvironment(config.increase),
    NETWORK_KEY_LIFETIME: `${config.networkKeyLifetimeMs}ms`,
    CHECK_ANSWERS: String(config.checkResponses),
    LOG_LEVEL: config.logLevel,
  };
}

function lithicEnvironment(lithic: Config['lithic']): NodeJS.ProcessEnv {
  if (lithic === null) return {};
  return {
    LITHIC_API_KEY: lithic.apiKey,
    LITHIC_WEBHOOK_SECRET: lithic.webhookSecret,
    LITHIC_ASA_SECRET: lithic.asaSecret,
    LITHIC_BASE_URL: lithic.baseUrl,
    LITHIC_REQUESTS_PER_SECOND: String(lithic.requestsPerSecond),
  };
}

function increaseEnvironment(increase: Config['increase']): NodeJS.ProcessEnv {
  if (increase === null) return {};
  return {
    INCREASE_API_KEY: increase.apiKey,
    INCREASE_WEBHOOK_SECRET: increase.webhookSecret,
    INCREASE_BASE_URL: increase.baseUrl,
    INCREASE_FUNDING_ACCOUNT_ID: increase.fundingAccountId,
    INCREASE_REAL_TIME_DECISIONS: String(increase.asksForDecisions),
    INCREASE_REQUESTS_PER_SECOND: String(increase.requestsPerSecond),
  };
}

export function tronEnvironment(tron: Config['tron']): NodeJS.ProcessEnv {
  if (tron === null) return {};
  return {
    TRON_NETWORK: tron.network,
    TRON_NODE_URLS: tron.nodes.map(({ full, solidity }) => `${full}|${solidity}`).join(','),
    TRON_API_KEY: tron.apiKey ?? '',
    TRON_USDT_CONTRACT: tron.usdtContract,
    TRON_XPUB: tron.xpub ?? '',
    TRON_SCAN_INTERVAL: `${tron.scanIntervalMs}ms`,
  };
}
