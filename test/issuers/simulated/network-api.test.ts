import assert from 'node:assert/strict';
import { createSecretKey } from 'node:crypto';
import pg from 'pg';
import { request } from 'undici';
import { simulatedNetworkCredentials } from '../../../issuers/simulated/credentials.ts';
import { query } from '../../../platform/db/sql.ts';
import { issuance, statusChange, transfer } from '../../support/adapters/network-requests.ts';
import { startTestNetwork, type TestNetwork } from '../../support/adapters/simulated-network.ts';
import { ownerUrlOf } from '../../support/postgres.ts';
import { untilHolds } from '../../support/until.ts';

describe("the simulated network's HTTP API", () => {
  let test: TestNetwork;
  let authorization: string;
  before(async () => {
    test = await startTestNetwork();
    authorization = `Bearer ${simulatedNetworkCredentials(test.secret).bearerToken}`;
  });
  after(() => test.close());

  async function post(
    body: string,
    headers: Record<string, string> = { authorization },
    path = '/issuances',
  ): Promise<number> {
    const response = await request(test.url + path, { method: 'POST', headers, body });
    await response.body.dump();
    return response.statusCode;
  }

  async function get(path: string, headers: Record<string, string> = { authorization }): Promise<number> {
    const response = await request(test.url + path, { headers });
    await response.body.dump();
    return response.statusCode;
  }

  async function operations(): Promise<number> {
    return (await query(test.orm.em.fork(), 'SELECT 1 FROM simulated_network.operation')).length;
  }

  it('answers only callers with the bearer token', async () => {
    const before = await operations();
    const other = simulatedNetworkCredentials(createSecretKey(new Uint8Array(32))).bearerToken;
    const wrong = [{}, { authorization: 'Bearer ' }, { authorization: `Bearer ${other}` }];
    for (const headers of [...wrong, { authorization: authorization.replace('Bearer', 'Basic') }]) {
      assert.equal(await post(JSON.stringify(issuance(0)), headers as Record<string, string>), 401);
      assert.equal(await get(`/issuances/${issuance(0).token}`, headers as Record<string, string>), 401);
      assert.equal(await get('/cards/sim_1/details', headers as Record<string, string>), 401);
      for (const path of ['/topups', '/withdrawals', '/status-changes']) {
        assert.equal(await post('{}', headers as Record<string, string>, path), 401);
      }
    }
    assert.equal(await operations(), before);
  });

  it('refuses what it cannot read, and keeps none of it', async () => {
    const before = await operations();
    const asked = issuance(0);
    const load = transfer('topup', 'sim_1', 0);
    const take = transfer('withdrawal', 'sim_1', 0);
    const freeze = statusChange('sim_1', 'frozen');
    for (const [path, request, ...wrong] of [
      [
        '/issuances',
        asked,
        ...[load.token, `${asked.token}\0`].map((token) => ({ token })),
        ...[0, 1.5, 2 ** 53, '100'].map((amountCents) => ({ amountCents })),
        ...['42x', '4242424242424'].map((bin) => ({ bin })),
        ...['', 'a\0b'].map((productCode) => ({ productCode })),
        { cardholderName: 7 },
      ],
      ['/topups', load, { token: asked.token }, { amountCents: 0 }, { networkCardId: 'a\0b' }],
      ['/withdrawals', take, { token: load.token }, { amountCents: 0 }, { networkCardId: 'a\0b' }],
      ['/status-changes', freeze, { token: load.token }, { cardStatus: 'failed' }, { networkCardId: '' }],
    ] as [string, ...object[]][]) {
      const bodies = wrong.map((field) => JSON.stringify({ ...request, ...field }));
      for (const body of [...bodies, '[]', '{', ''])
        assert.equal(await post(body, undefined, path), 400, `${path} ${body}`);
    }
    assert.equal(await post(JSON.stringify({ ...asked, cardholderName: 'x'.repeat(20_000) })), 413);
    for (const path of ['/issuances/a%00b', '/cards', `/topups/${asked.token}`, `/withdrawals/${load.token}`])
      assert.equal(await get(path), 400, path);
    assert.equal(await get('/nothing'), 404);
    assert.equal(await operations(), before);
    assert.deepEqual(test.logged, []);
  });

  it('stores neither the cardholder nor the card number', async () => {
    const asked = issuance(41, { cardholderName: 'Grace Hopper' });
    await test.network.issueCard(asked);
    const rows = await query(
      test.orm.em.fork(),
      `SELECT to_jsonb(o) AS operation, to_jsonb(c) AS card, to_jsonb(b) AS callback
         FROM simulated_network.operation o JOIN simulated_network.card c USING (token)
         JOIN simulated_network.callback b USING (token) WHERE token = $1`,
      [asked.token],
    );
    assert.equal(rows.length, 1);
    assert.doesNotMatch(JSON.stringify(rows), /Grace|Hopper|[0-9]{16}/);
  });

  it('answers 500, and logs it, when the database is not what it should be', async () => {
    const owner = new pg.Client(ownerUrlOf(test.databaseUrl));
    await owner.connect();
    await owner.query('DROP SCHEMA simulated_network CASCADE');
    await owner.end();
    await assert.rejects(test.network.lookUpIssuance(issuance(0).token), /answered 500/);
    assert.match(test.logged.join(), /simulated network: a request failed/);
    await untilHolds(() => assert.match(test.logged.join(), /cannot send callbacks; check PostgreSQL/));
  });
});
