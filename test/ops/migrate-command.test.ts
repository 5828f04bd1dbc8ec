import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { Connection } from '@temporalio/client';
import { freePort } from '../../dev/free-port.ts';
import { SEARCH_ATTRIBUTES } from '../../platform/temporal/search-attributes.ts';
import { createTestDatabase, ownerUrlOf } from '../support/postgres.ts';
import { testServers } from '../support/servers.ts';

const MIGRATE = fileURLToPath(new URL('../../operator/migrate.ts', import.meta.url));

describe('npm run migrate', () => {
  let databaseUrl: string;
  before(async () => {
    databaseUrl = ownerUrlOf(await createTestDatabase());
  });

  const migrate = (env: NodeJS.ProcessEnv = {}) =>
    new Promise<{ code: unknown; out: string; err: string }>((resolve) => {
      const all = { PATH: process.env.PATH, DATABASE_URL: databaseUrl, ...env };
      execFile(process.execPath, [MIGRATE], { env: all }, (error, out, err) =>
        resolve({ code: error?.code ?? 0, out, err }),
      );
    });

  it("makes Temporal's namespace and its search attributes once", async () => {
    const { address } = testServers().temporal;
    const namespace = `migrated-${randomUUID()}`;
    const temporal = { TEMPORAL_ADDRESS: address, TEMPORAL_NAMESPACE: namespace };
    const names = SEARCH_ATTRIBUTES.map(({ name }) => name);
    assert.deepEqual(await migrate(temporal), {
      code: 0,
      out: `The database is up to date.\nAdded ${names.join(', ')} to Temporal's namespace ${namespace}.\n`,
      err: '',
    });
    assert.match((await migrate(temporal)).out, new RegExp(`namespace ${namespace} is up to date`));
    const connection = await Connection.connect({ address });
    const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace });
    await connection.close();
    assert.deepEqual(Object.keys(customAttributes).sort(), names.toSorted());
  });

  it('leaves Temporal to the workers if it does not know its address', async () => {
    const { code, out } = await migrate();
    assert.equal(code, 0);
    assert.match(out, /^The database is up to date\.\nTEMPORAL_ADDRESS is not set/);
  });

  it('fails after the database is migrated if Temporal does not respond', async () => {
    const { code, out, err } = await migrate({ TEMPORAL_ADDRESS: `127.0.0.1:${await freePort()}` });
    assert.equal(code, 1);
    assert.equal(out, 'The database is up to date.\n');
    assert.match(err, /^The database is migrated, but Temporal does not respond at 127\.0\.0\.1/);
  });
});
