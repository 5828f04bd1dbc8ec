import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { createApiKey } from '../../accounts/api-keys.ts';
import { createPartner } from '../../accounts/partners.ts';
import { freePort } from '../../dev/free-port.ts';
import { KeyRing } from '../../platform/crypto/key-ring.ts';
import { OPERATOR_ROLE } from '../../platform/db/login.ts';
import { openOrm } from '../../platform/db/orm.ts';
import { OPERATOR_LIMITS } from '../../platform/db/session.ts';
import type { OperatorContext } from '../../requests/operator-context.ts';
import { removeEndpoint, setEndpoint } from '../../webhooks/endpoints.ts';
import { type Service, untilThere } from '../model/clients/running-service.ts';
import { startTokenChain } from '../model/clients/token-chain.ts';
import { bundleFile, tronEnvironment } from '../support/crash/processes.ts';
import { tronConfigOf } from '../support/deposits/deposit-stack.ts';
import { runStack, type StackProcess } from '../support/dev/stack-process.ts';
import type { Receivers } from './receivers.ts';

export interface SoakedStack {
  /** As the model's clients meet it. */
  service: Service;
  /** `npm start`, which starts again whatever is killed. */
  supervisor: StackProcess;
  dataDir: string;
  /** The partners whose events go to the receivers. */
  partnerIds: string[];
  /** @param keep keeps logs and data */
  stop(keep: boolean): Promise<void>;
}

/** How long an issuance, top-up or withdrawal may wait for the network before it waits for an operator. */
export const DEADLINE_MS = 20_000;

/** The whole service as `npm start` runs it, in processes of its own, on a TRON chain that the model drives. */
export async function startSoakedStack(receivers: Receivers): Promise<SoakedStack> {
  const folder = mkdtempSync(join(tmpdir(), 'card-issuing-soak-'));
  // If we are root, PostgreSQL runs as another user, who must be able to reach its data folder through this one.
  chmodSync(folder, 0o755);
  const dataDir = join(folder, 'data');
  const chain = await startTokenChain();
  const port = await freePort();
  const supervisor = runStack('start', {
    ...(tronEnvironment({ ...tronConfigOf(chain.nodes), scanIntervalMs: 300 }) as Record<string, string>),
    DATA_DIR: dataDir,
    PORT: String(port),
    // As in the image, so that a restarting process need not bundle the workflows.
    WORKFLOW_BUNDLE: await bundleFile(folder),
    // Short, so that operators get something to decide, and no client waits long for a killed process.
    CARD_CREATION_WAIT_MS: '3000',
    ISSUANCE_DEADLINE: `${DEADLINE_MS}ms`,
    TOPUP_DEADLINE: `${DEADLINE_MS}ms`,
    WITHDRAWAL_DEADLINE: `${DEADLINE_MS}ms`,
    DEPOSIT_ADDRESS_TTL: '6s',
    WEBHOOK_TIMEOUT: '1s',
    WEBHOOK_RETRY_SCHEDULE: Array(20).fill('1s').join(),
    RATE_LIMIT_PER_SECOND: '0',
    STORED_MB_PER_DAY: '0',
    CHECK_ANSWERS: 'true',
    LOG_LEVEL: 'warn',
  });
  // The stack ends with this process.
  process.once('exit', () => supervisor.kill('SIGTERM'));
  await supervisor.printed(/^ready/);
  const { databaseUrl, operatorDatabaseUrl, temporalAddress, temporalNamespace, apiUrl } = readJson(
    join(dataDir, 'stack.json'),
  );
  const [id, secret] = readJson(join(dataDir, 'secrets.json')).encryptionKeys.split(':');
  const orm = await openOrm({ databaseUrl, poolSize: 16, limits: OPERATOR_LIMITS });
  const operatorOrm = await openOrm({
    databaseUrl: operatorDatabaseUrl,
    poolSize: 8,
    limits: OPERATOR_LIMITS,
    role: OPERATOR_ROLE,
  });
  const ring = new KeyRing([{ id, secret: Buffer.from(secret, 'base64') }]);
  const operator: OperatorContext = { orm: operatorOrm, ring, actor: 'soak' };
  const connection = await Connection.connect({ address: temporalAddress });
  const partnerIds: string[] = [];
  return {
    supervisor,
    dataDir,
    partnerIds,
    service: {
      stack: {
        orm,
        operator,
        config: { taskQueuePrefix: '' },
        client: new Client({ connection, namespace: temporalNamespace }),
        createPartner: async (name) => {
          const partner = await createPartnerWithKeys(operator, name);
          const url = receivers.urlOf(partner.id);
          receivers.setSecret(partner.id, await setReceiver({ orm, ring, actor: 'soak' }, partner.id, url));
          partnerIds.push(partner.id);
          return partner;
        },
      },
      chain,
      // Any answer can be lost at any time.
      troubled: true,
      answers: new Map(),
      waiting: new Set(),
      origin: apiUrl.replace(/\/v1$/, ''),
    },
    stop: async (keep) => {
      supervisor.kill('SIGTERM');
      await supervisor.ended;
      await connection.close();
      await orm.close();
      await operatorOrm.close();
      await chain.stop();
      if (keep) writeFileSync(join(dataDir, 'logs', 'supervisor.log'), supervisor.lines.join('\n'));
      else rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function createPartnerWithKeys(operator: OperatorContext, name: string) {
  const { id } = await untilThere(() => createPartner(operator, { name, secureDetailsEnabled: false }));
  const createKey = (mode: 'test' | 'live') =>
    untilThere(() => createApiKey(operator, { partnerId: id, mode, name: null }));
  const keys = { test: (await createKey('test')).key, live: (await createKey('live')).key };
  return { id, keys };
}

/** @returns the secret, which is shown only once */
function setReceiver(context: OperatorContext, partnerId: string, url: string): Promise<string> {
  return untilThere(async () => {
    for (const mode of ['test', 'live'] as const) await removeEndpoint(context, { partnerId, mode }, null);
    const { secret } = await setEndpoint(context, { partnerId, modes: ['test', 'live'], url });
    if (secret === null) throw new Error('an endpoint that was removed has kept its secret');
    return secret;
  });
}

// biome-ignore lint/suspicious/noExplicitAny: what another program would read.
const readJson = (file: string): any => JSON.parse(readFileSync(file, 'utf8'));
