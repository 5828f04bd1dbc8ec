import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Connection } from '@temporalio/client';
import { freePort } from '../../../dev/free-port.ts';
import { type Config, readConfig } from '../../../platform/config/service.ts';
import { issueCardWorkflowId, resolveOperationSignal } from '../../../workflows/messages.ts';
import { createAuthority } from '../../support/adapters/webhooks/tls.ts';
import { createCard, settledCard } from '../../support/cards.ts';
import { fundedPartner } from '../../support/money.ts';
import { testServers } from '../../support/servers.ts';
import { startTestStack } from '../../support/stack.ts';
import { startTemporalCloud } from '../../support/temporal-cloud.ts';
import { until } from '../../support/until.ts';

const HOST = 'temporal.example';

/** As Temporal knows who calls, and the variables that make a process that caller. */
interface Credential {
  caller: string;
  env: Record<string, string>;
}

describe("a rotation of Temporal's credentials while the service runs", () => {
  const authority = createAuthority('Temporal');
  const accepted = new Set<string>();
  let folder: string;
  let cloud: Awaited<ReturnType<typeof startTemporalCloud>>;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'card-issuing-credentials-'));
    const { address } = testServers().temporal;
    const tls = { ...authority.issue({ hosts: [HOST] }), ca: [authority.ca] };
    cloud = await startTemporalCloud(address, { tls, accepted });
  });
  after(async () => {
    cloud.stop();
    await rm(folder, { recursive: true });
  });

  async function fileWith(text: string): Promise<string> {
    const path = join(folder, randomUUID());
    await writeFile(path, text);
    return path;
  }

  async function newApiKey(): Promise<Credential> {
    const caller = randomUUID();
    return { caller, env: { TEMPORAL_API_KEY_FILE: await fileWith(`${caller}\n`) } };
  }

  async function newCertificate(): Promise<Credential> {
    const caller = `${randomUUID()}.example`;
    const { cert, key } = authority.issue({ hosts: [caller] });
    const env = {
      TEMPORAL_TLS_CLIENT_CERT_PATH: await fileWith(cert),
      TEMPORAL_TLS_CLIENT_KEY_PATH: await fileWith(key),
    };
    return { caller, env };
  }

  async function temporalAs({ env }: Credential): Promise<Config['temporal']> {
    const { namespace = 'default' } = testServers().temporal;
    return readConfig({
      ...{ DATABASE_URL: 'postgres://127.0.0.1/none', ENCRYPTION_KEYS: `k1:${'A'.repeat(43)}=` },
      ...{ TEMPORAL_ADDRESS: cloud.address, TEMPORAL_NAMESPACE: namespace, TEMPORAL_TLS: 'true' },
      ...{ TEMPORAL_TLS_SERVER_NAME: HOST },
      TEMPORAL_TLS_SERVER_CA_CERT_PATH: await fileWith(authority.ca),
      ...env,
    }).temporal;
  }

  for (const [what, make] of [
    ['an API key', newApiKey],
    ['a client certificate and its key', newCertificate],
  ] as const) {
    it(`replaces ${what}, work continues with the new one, and the old one is refused once it is revoked`, async () => {
      const [old, young] = [await make(), await make()];
      accepted.add(old.caller);
      const first = await startTestStack({ temporal: await temporalAs(old), issuanceDeadlineMs: 2_000 });
      const partner = await fundedPartner(first);
      const pending = await createCard(partner, { amount: 1_047 }, { mode: 'live' });
      assert.equal(pending.status, 202);

      accepted.add(young.caller);
      const next = { ...first.config, temporal: await temporalAs(young), port: await freePort() };
      const second = await startTestStack(next, { product: false });
      const there = second.partnerHere(partner);
      try {
        for (const one of [partner, there])
          assert.equal((await createCard(one, { amount: 1_000 }, { mode: 'live' })).status, 201);
        await first.stop();
        accepted.delete(old.caller);
        const { connectionOptions } = await temporalAs(old);
        await assert.rejects(Connection.connect(connectionOptions), ({ cause }: Error) =>
          /unauthorized/.test(String(cause)),
        );

        assert.equal((await createCard(there, { amount: 1_000 }, { mode: 'live' })).status, 201);
        const workflow = second.client.workflow.getHandle(issueCardWorkflowId(pending.json.id));
        await until('it waits for an operator', async () => {
          const shown = await workflow.query<{ currentDetails?: string }>('__temporal_workflow_metadata');
          return shown.currentDetails?.includes('Waiting for an operator');
        });
        await workflow.signal(resolveOperationSignal, { outcome: 'failed' });
        assert.equal((await settledCard(there, pending.json.id)).status, 'failed');
      } finally {
        await second.stop();
      }
    });
  }
});
