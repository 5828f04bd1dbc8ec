import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { pino } from 'pino';
import { startApi } from '../../../api/server.ts';
import { createLogin, urlFor } from '../../../dev/postgres/logins.ts';
import { API_ROLE, LoginRefused, OPERATOR_ROLE, WORKER_ROLE } from '../../../platform/db/login.ts';
import { type OrmOptions, openOrm } from '../../../platform/db/orm.ts';
import { query } from '../../../platform/db/sql.ts';
import { startWorker } from '../../../worker/start-worker.ts';
import { operateIn } from '../../support/operator/operate.ts';
import {
  apiUrlOf,
  asOwner,
  connectTo,
  createTestDatabase,
  operatorUrlOf,
  ownerUrlOf,
  workerUrlOf,
} from '../../support/postgres.ts';
import { testConfig } from '../../support/stack.ts';

const INSUFFICIENT_PRIVILEGE = { code: '42501' };

/** What a process behind a pooler can't set itself. */
const LIMITS = [
  `ALTER ROLE $ SET lock_timeout = '4s'`,
  `ALTER ROLE $ SET idle_in_transaction_session_timeout = '5s'`,
  `ALTER ROLE $ SET statement_timeout = '8s'`,
];
const OFF = 'ALTER ROLE $ SET synchronous_commit = off';

describe('a login', () => {
  let url: string;
  before(async () => {
    url = await createTestDatabase();
  });

  /** A new login of one group role, changed by statements in which $ is its name. @returns its URL */
  async function loginWith(...statements: string[]): Promise<string> {
    const user = `login_${randomUUID().slice(0, 8)}`;
    const login = { user, password: 'p' };
    await createLogin(ownerUrlOf(url), { ...login, role: WORKER_ROLE });
    await asOwner(
      url,
      statements.map((statement) => statement.replaceAll('$', user)),
    );
    return urlFor(url, login);
  }

  const refuses = async (databaseUrl: string, why: RegExp, more: Partial<OrmOptions> = {}) => {
    await assert.rejects(
      openOrm({ databaseUrl, poolSize: 1, role: WORKER_ROLE, ...more }),
      (error: Error) => {
        assert.ok(error instanceof LoginRefused, String(error));
        assert.match(error.message, why);
        assert.match(error.message, /docs\/operating\.md/);
        return true;
      },
    );
  };

  it('is refused with the reason if it could leave its role', async () => {
    await refuses(ownerUrlOf(url), /"postgres" is a superuser/);
    await refuses(await loginWith('GRANT postgres TO $'), /is a superuser, or can become one/);
    await refuses(await loginWith('ALTER ROLE $ CREATEROLE'), /may make roles/);
    await refuses(await loginWith('ALTER ROLE $ BYPASSRLS'), /BYPASSRLS/);
    await refuses(await loginWith('ALTER ROLE $ REPLICATION'), /REPLICATION/);
    await refuses(await loginWith(`GRANT ${OPERATOR_ROLE} TO $`), /is a member of card_issuing_operator/);
    await refuses(await loginWith('GRANT pg_write_all_data TO $'), /is a member of pg_write_all_data/);
    await refuses(await loginWith('GRANT INSERT ON ledger.entry TO $'), /may write ledger\.entry/);
    await refuses(await loginWith('ALTER TABLE card OWNER TO $'), /owns public\.card/);
    await refuses(await loginWith('ALTER SCHEMA ledger OWNER TO $'), /owns the schema ledger/);
    await refuses(
      await loginWith(
        'CREATE ROLE $_owner',
        'ALTER SCHEMA simulated_network OWNER TO $_owner',
        'GRANT $_owner TO $',
      ),
      /owns the schema simulated_network, or can become who does/,
    );
    await asOwner(url, ['ALTER SCHEMA ledger OWNER TO postgres', 'ALTER TABLE card OWNER TO postgres']);
  });

  it('is refused if it has no role, or another one', async () => {
    await refuses(operatorUrlOf(url), /not a member of card_issuing_worker/);
    await refuses(apiUrlOf(url), /not a member of card_issuing_worker/);
    await refuses(workerUrlOf(url), /not a member of card_issuing_api/, { role: API_ROLE });
    await refuses(url, /not a member of card_issuing_operator/, { role: OPERATOR_ROLE });
  });

  it('is refused if its commits do not wait for the disk, whoever may log in', async () => {
    const off = await loginWith(OFF);
    const why = /commits without waiting for the disk.*ALTER ROLE "login_\w+" SET synchronous_commit = 'on'/;
    await refuses(off, why);
    await refuses(off, why, { onOwnerLogin: () => {} });
    await refuses(await loginWith(`ALTER ROLE $ SET role = '${WORKER_ROLE}'`, ...LIMITS, OFF), why, {
      pooled: true,
    });
    const local = await loginWith('ALTER ROLE $ SET synchronous_commit = local');
    await (await openOrm({ databaseUrl: local, poolSize: 1, role: WORKER_ROLE })).close();
  });

  it('is refused if it does not get the role that it asks for', async () => {
    // As if a pooler dropped the startup setting: nothing is asked for, and the login has no default.
    await refuses(await loginWith(), /works as "login_\w+", not as card_issuing_worker.*ALTER ROLE "login_/, {
      pooled: true,
    });
    const settled = await loginWith(`ALTER ROLE $ SET role = '${WORKER_ROLE}'`, ...LIMITS);
    await (await openOrm({ databaseUrl: settled, poolSize: 1, role: WORKER_ROLE, pooled: true })).close();
  });
});

describe('a login that is both API and worker', () => {
  it('is warned about, since it can do what only one of them has to', async () => {
    const lines: string[] = [];
    const logger = pino({ level: 'warn' }, { write: (line: string) => lines.push(line) });
    const config = await testConfig();
    const api = await startApi(config, logger);
    await api.stop();
    const warnings = () => lines.splice(0).filter((line) => line.includes('share a login'));
    const [shared, ...others] = warnings();
    assert.match(shared ?? '', /The login \\"test_service\\" is a member of card_issuing_worker/);
    assert.deepEqual(others, []);
    const own = await startApi({ ...config, databaseUrl: apiUrlOf(config.databaseUrl) }, logger);
    await own.stop();
    assert.deepEqual(warnings(), []);
  });
});

describe('ALLOW_OWNER_LOGIN', () => {
  it('lets API, worker and command line log in as the owner, with a warning', async () => {
    const config = await testConfig();
    const owner = { ...config, databaseUrl: ownerUrlOf(config.databaseUrl) };
    const lines: string[] = [];
    const logger = pino({ level: 'warn' }, { write: (line: string) => lines.push(line) });
    await assert.rejects(startApi(owner, logger), LoginRefused);
    await assert.rejects(startWorker(owner, logger), LoginRefused);
    await assert.rejects(
      startApi({ ...config, databaseDirectUrl: owner.databaseUrl }, logger),
      /"postgres" is a superuser/,
    );
    assert.equal(lines.length, 0);

    const api = await startApi({ ...owner, allowOwnerLogin: true }, logger);
    await api.stop();
    assert.equal(lines.filter((line) => line.includes('ALLOW_OWNER_LOGIN')).length, 1);

    const env = { DATABASE_URL: owner.databaseUrl };
    const refused = await operateIn(env)('partner', 'list');
    assert.deepEqual([refused.code, refused.out], [1, '']);
    assert.match(
      refused.err,
      /^The login "postgres" is a superuser.* only of card_issuing_operator .*ALLOW_OWNER_LOGIN=true/,
    );
    const allowed = await operateIn({ ...env, ALLOW_OWNER_LOGIN: 'true' })('partner', 'list');
    assert.deepEqual([allowed.code, allowed.json], [0, []]);
    assert.match(allowed.err, /^warning: .*superuser.* \(ALLOW_OWNER_LOGIN\)\n$/);
  });
});

describe('the database rights', () => {
  let url: string;
  before(async () => {
    url = await createTestDatabase();
    await asOwner(url, [
      `INSERT INTO partner (id, name) VALUES ('prt_1', 'P')`,
      `INSERT INTO account_usage (partner_id, mode) VALUES ('prt_1', 'test')`,
      `INSERT INTO api_key (id, partner_id, mode, hash, prefix, hint) VALUES ('key_1', 'prt_1', 'test', 'h', 'p', 'h')`,
      `INSERT INTO product (code, bin, network) VALUES ('USD', '424242', 'visa')`,
    ]);
  });

  const COLUMNS = { transfer: 'amount', entry: 'amount', account: 'posted', code: 'code' };
  const LEDGER = Object.entries(COLUMNS).flatMap(([table, column]) => [
    `INSERT INTO ledger.${table} (${column}) SELECT ${column} FROM ledger.${table}`,
    `DELETE FROM ledger.${table}`,
    `TRUNCATE ledger.${table}`,
  ]);
  const EVERYBODY = [
    ...LEDGER,
    'UPDATE ledger.account SET posted = 1',
    `UPDATE ledger.code SET mode = NULL`,
    'CREATE TABLE mine (id int)',
    'CREATE FUNCTION mine() RETURNS int LANGUAGE sql AS $$ SELECT 1 $$',
    'DROP TABLE card',
    'ALTER TABLE card ADD mine int',
    'DELETE FROM partner',
    'DELETE FROM api_key',
    'DELETE FROM audit_entry',
    'DELETE FROM event',
    'DROP TABLE event_first',
    'ALTER TABLE event DETACH PARTITION event_first',
    `CREATE TABLE mine PARTITION OF event FOR VALUES FROM ('evt_x') TO ('evt_y')`,
    'UPDATE audit_entry SET actor = actor',
    'DELETE FROM card_transaction',
    'UPDATE card_transaction SET amount_cents = 1',
    'UPDATE event SET body = body',
    'UPDATE card SET partner_id = partner_id',
    'UPDATE card SET funding_cents = 1',
    `UPDATE api_key SET hash = 'x'`,
    'UPDATE day_closing SET closing_cents = 0',
    'DELETE FROM day_closing',
    'UPDATE account_usage SET partner_id = partner_id',
    `INSERT INTO schema_migration (name, run_on) VALUES ('x', now())`,
  ];
  const SERVICE = [
    `INSERT INTO partner (id, name) VALUES ('prt_2', 'Q')`,
    ...['name = name', 'secure_details_enabled = true', `fee_plan = '{}'`, `limits = '{}'`].map(
      (setting) => `UPDATE partner SET ${setting}`,
    ),
    `UPDATE api_key SET scopes = '{}'`,
    'UPDATE api_key SET ip_allowlist = NULL',
    `INSERT INTO product (code, bin, network) VALUES ('X', '1', 'x')`,
    'UPDATE product SET is_current = true',
    `INSERT INTO partner_product VALUES ('prt_1', 'USD')`,
    `INSERT INTO account_usage (partner_id, mode) VALUES ('prt_1', 'live')`,
    'DELETE FROM account_usage',
    `INSERT INTO balance_adjustment (id, partner_id, mode, amount_cents, reason) VALUES ('a', 'prt_1', 'live', 1, '')`,
    'DELETE FROM delivery',
    'DELETE FROM delivery_attempt',
    ...['event_first', 'audit_entry_first', 'ledger.entry_first'].map(
      (partition) => `SELECT FROM ${partition}`,
    ),
    'UPDATE simulated_network.operation SET request = request',
    `SET ROLE ${OPERATOR_ROLE}`,
    'SET ROLE postgres',
    'SELECT ledger.deny_change()',
    `SELECT claim_status_change('a', 'b', 'c', 'd')`,
  ];
  const REVEAL = `INSERT INTO card_reveal (id, partner_id, mode, card_id, api_key_id, request_id) VALUES ('r', 'prt_1', 'test', 'c', 'key_1', 'q')`;
  const URLS = { [API_ROLE]: apiUrlOf, [WORKER_ROLE]: workerUrlOf, [OPERATOR_ROLE]: operatorUrlOf };
  const DENIED = {
    [API_ROLE]: [
      ...SERVICE,
      `SET ROLE ${WORKER_ROLE}`,
      'UPDATE api_key SET expiry_announced_at = NULL',
      'INSERT INTO deposit_payment SELECT * FROM deposit_payment',
      `UPDATE deposit_payment SET status = 'credited'`,
      'UPDATE deposit SET credited_cents = 1',
      'INSERT INTO deposit_resolution SELECT * FROM deposit_resolution',
      'INSERT INTO chain_scan SELECT * FROM chain_scan',
      'UPDATE chain_scan SET block_number = 1',
      'INSERT INTO delivery_attempt SELECT * FROM delivery_attempt',
      'SELECT drop_old_events()',
    ],
    [WORKER_ROLE]: [
      ...SERVICE,
      `SET ROLE ${API_ROLE}`,
      REVEAL,
      `INSERT INTO faucet_credit (id, partner_id, mode, amount_cents) VALUES ('f', 'prt_1', 'test', 1)`,
      'INSERT INTO deposit SELECT * FROM deposit',
      `SELECT nextval('deposit_address_index')`,
      'INSERT INTO usage_bucket SELECT * FROM usage_bucket',
      `INSERT INTO api_key (id, partner_id, mode, hash, prefix, hint) VALUES ('key_2', 'prt_1', 'live', 'x', 'p', 'x')`,
      'UPDATE api_key SET revoked_at = NULL',
      'UPDATE api_key SET expires_at = NULL',
    ],
    [OPERATOR_ROLE]: [
      'SELECT hash FROM api_key',
      `UPDATE card SET status = 'active'`,
      'DELETE FROM card',
      'DELETE FROM webhook_endpoint',
      REVEAL,
      'UPDATE account_usage SET loaded_cents = 0',
      'INSERT INTO idempotency_claim SELECT * FROM idempotency_claim',
      'UPDATE idempotency_claim SET response_status = 200',
      'UPDATE idempotency_claim SET by_operator = true',
      // The reconciliation reads the simulated network's cards and operations.
      'SELECT * FROM simulated_network.callback',
      'UPDATE simulated_network.card SET token = token',
      `SET ROLE ${WORKER_ROLE}`,
      'SET ROLE postgres',
    ],
  };

  for (const role of [API_ROLE, WORKER_ROLE, OPERATOR_ROLE] as const) {
    it(`of ${role} cover its own work and nothing else`, async () => {
      const orm = await openOrm({ databaseUrl: URLS[role](url), poolSize: 1, role });
      try {
        for (const statement of [...EVERYBODY, ...DENIED[role]]) {
          await assert.rejects(query(orm.em.fork(), statement), INSUFFICIENT_PRIVILEGE, statement);
        }
      } finally {
        await orm.close();
      }
    });
  }

  for (const [role, statements] of [
    [
      API_ROLE,
      [
        `UPDATE api_key SET revoked_at = NULL WHERE id = 'key_ended'`,
        `UPDATE api_key SET revoked_at = now() WHERE id = 'key_ended'`,
        `UPDATE api_key SET expires_at = NULL WHERE id = 'key_ended'`,
        `UPDATE api_key SET expires_at = now() + interval '1 day' WHERE id = 'key_ended'`,
      ],
    ],
    [OPERATOR_ROLE, [`UPDATE api_key SET revoked_at = NULL WHERE id = 'key_ended'`]],
  ] as const) {
    it(`of ${role} bring no key back that was revoked or has expired`, async () => {
      await asOwner(
        url,
        `INSERT INTO api_key (id, partner_id, mode, hash, prefix, hint, revoked_at, expires_at)
         VALUES ('key_ended', 'prt_1', 'test', 'ended', 'p', 'h', now(), now()) ON CONFLICT DO NOTHING`,
      );
      const orm = await openOrm({ databaseUrl: URLS[role](url), poolSize: 1, role });
      try {
        for (const statement of statements)
          await assert.rejects(query(orm.em.fork(), statement), /make a new one/, statement);
        if (role === API_ROLE)
          await query(orm.em.fork(), `UPDATE api_key SET expires_at = now() - interval '1 day'`);
      } finally {
        await orm.close();
      }
    });
  }

  it('of any other login are none', async () => {
    await asOwner(
      url,
      `DO $$ BEGIN CREATE ROLE test_nobody LOGIN PASSWORD 'p'; EXCEPTION WHEN duplicate_object THEN NULL; END $$`,
    );
    await using nobody = await connectTo(urlFor(url, { user: 'test_nobody', password: 'p' }));
    for (const statement of [
      'SELECT FROM partner',
      'SELECT FROM ledger.account',
      'CREATE TABLE mine (id int)',
      `SELECT lock_funding_terms('a')`,
      `SELECT ledger.apply_operations('[]')`,
      `SELECT claim_status_change('a', 'b', 'c', 'd')`,
    ]) {
      await assert.rejects(nobody.query(statement), INSUFFICIENT_PRIVILEGE, statement);
    }
  });
});
