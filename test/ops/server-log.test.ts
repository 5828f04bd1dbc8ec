import assert from 'node:assert/strict';
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../dev/free-port.ts';
import { type RunningPostgres, startEmbeddedPostgres } from '../../dev/postgres/embedded-postgres.ts';
import { readLoggedValues } from '../../platform/db/logged-values.ts';
import { WORKER_ROLE } from '../../platform/db/login.ts';
import { migrate } from '../../platform/db/migrate.ts';
import { type Orm, openOrm } from '../../platform/db/orm.ts';
import { query } from '../../platform/db/sql.ts';
import { asOwner, createTestLogins, workerUrlOf } from '../support/postgres.ts';

describe("PostgreSQL's log", () => {
  let folder: string;
  let postgres: RunningPostgres;
  const log = () => readFile(join(folder, 'postgres.log'), 'utf8');
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'card-issuing-log-'));
    await chmod(folder, 0o755);
    postgres = await startEmbeddedPostgres({
      ...{ dataDir: join(folder, 'pg'), port: await freePort(), password: 'test' },
      settings: ['log_min_duration_statement=0'],
    });
    await migrate(postgres.url);
    await createTestLogins(postgres.url);
    await asOwner(postgres.url, [
      `INSERT INTO partner (id, name) VALUES ('prt_1', 'P')`,
      `INSERT INTO product (code, bin, network) VALUES ('USD', '424242', 'visa')`,
    ]);
  });
  after(async () => {
    await postgres?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  async function withWorker<T>(work: (orm: Orm) => Promise<T>): Promise<T> {
    const orm = await openOrm({ databaseUrl: workerUrlOf(postgres.url), poolSize: 1, role: WORKER_ROLE });
    return work(orm).finally(() => orm.close());
  }

  const insertCards = (name: string) =>
    withWorker(async (orm) => {
      const insert = (id: string, status: string) =>
        query(
          orm.em.fork(),
          `INSERT INTO card (id, partner_id, mode, status, external_ref, cardholder_first_name, email, product_code, network,
             network_card_id, funding_cents, fees, created_at)
           VALUES ($1, 'prt_1', 'live', $2, $3, $3, $4, 'USD', 'visa', $1, 1, '[]', now())`,
          [id, status, name, `${name}@example.com`],
        );
      await insert(`card_${name}`, 'active');
      await assert.rejects(insert(`card_${name}2`, 'active'), { code: '23505' });
      await assert.rejects(insert(`card_${name}3`, 'unheard of'), { code: '23514' });
    });

  it('has every statement and error, but no value, neither after a unique violation nor after a bad row', async () => {
    await insertCards('Clementine');
    const text = await log();
    assert.match(text, /duration: .*INSERT INTO card/);
    assert.match(text, /duplicate key value violates unique constraint "card_external_ref"/);
    assert.match(text, /violates check constraint/);
    assert.doesNotMatch(text, /Clementine/i);
    assert.equal(await withWorker((orm) => readLoggedValues(orm.em.fork())), null);
  });

  it('is reported if a login logs values all the same', async () => {
    await asOwner(postgres.url, [
      'ALTER ROLE test_worker SET log_parameter_max_length = -1',
      "ALTER ROLE test_worker SET log_error_verbosity = 'default'",
    ]);
    await insertCards('Josephine');
    assert.match(await log(), /Josephine@example/);
    const reason = await withWorker((orm) => readLoggedValues(orm.em.fork()));
    assert.match(reason ?? '', /test_worker.*log_error_verbosity = terse.*log_parameter_max_length = 0/);
  });
});
