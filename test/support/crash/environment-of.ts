import type { Config } from '../../../config/service.ts';

/** The environment in which a process reads this configuration. */
export function environmentOf(config: Config): NodeJS.ProcessEnv {
  const { connectionOptions, namespace } = config.temporal;
  return {
    ...process.env,
    HOST: config.host,
    PORT: String(config.port),
    DATABASE_URL: config.databaseUrl,
    DATABASE_DIRECT_URL: config.databaseDirectUrl ?? '',
    ALLOW_OWNER_LOGIN: String(config.allowOwnerLogin),
    TEMPORAL_ADDRESS: connectionOptions?.address,
    TEMPORAL_NAMESPACE: namespace,
    TASK_QUEUE_PREFIX: config.taskQueuePrefix,
    ENCRYPTION_KEYS: config.encryptionKeys
      .map(({ id, secret }) => `${id}:${Buffer.from(secret).toString('base64')}`)
      .join(','),
    CARD_NETWORK: config.cardNetwork,
    CARD_CREATION_WAIT_MS: String(config.cardCreationWaitMs),
    ISSUANCE_DEADLINE: `${config.issuanceDeadlineMs}ms`,
    TOPUP_DEADLINE: `${config.topUpDeadlineMs}ms`,
    WEBHOOK_RETRY_SCHEDULE: config.webhookDelaysMs.map((delayMs) => `${delayMs}ms`).join(','),
    WEBHOOK_TIMEOUT: `${config.webhookTimeoutMs}ms`,
    WEBHOOK_ALLOW_LOOPBACK_HTTP: String(config.webhookAllowLoopbackHttp),
    RATE_LIMIT_PER_SECOND: String(config.rateLimitPerSecond),
    RATE_LIMIT_BURST: String(config.rateLimitBurst),
    ACCOUNT_CONCURRENCY: String(config.accountConcurrency),
    DEPOSIT_ADDRESS_TTL: `${config.depositAddressTtlMs}ms`,
    ...tronEnvironment(config.tron),
    LOG_LEVEL: config.logLevel,
  };
}

function tronEnvironment(tron: Config['tron']): NodeJS.ProcessEnv {
  if (tron === null) return {};
  return {
    TRON_NETWORK: tron.network,
    TRON_NODE_URLS: tron.nodes.map(({ full, solidity }) => `${full}|${solidity}`).join(','),
    TRON_API_KEY: tron.apiKey ?? '',
    TRON_USDT_CONTRACT: tron.usdtContract,
    TRON_XPUB: tron.xpub,
    TRON_SCAN_INTERVAL: `${tron.scanIntervalMs}ms`,
  };
}
