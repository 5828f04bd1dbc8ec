import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { freePort } from '../../../dev/free-port.ts';
import { createLogin, urlFor } from '../../../dev/postgres/logins.ts';
import { API_ROLE, WORKER_ROLE } from '../../../platform/db/login.ts';
import { createCard } from '../../support/cards.ts';
import { fundedPartner } from '../../support/money.ts';
import { asOwner, ownerUrlOf } from '../../support/postgres.ts';
import { type ReplicatedPostgres, startReplicatedPostgres } from '../../support/replicated-postgres.ts';
import { startTestStack, type TestPartner, type TestStack } from '../../support/stack.ts';
import { until } from '../../support/until.ts';

describe('a rotation of a database login while the service runs', () => {
  const logins = ['before', 'after'].map((name) => ({
    ...{ user: `rotated_${name}_${process.pid}`, password: randomUUID() },
  })) as [Login, Login];
  let postgres: ReplicatedPostgres;
  let stack: TestStack;
  let partner: TestPartner;
  /** Both servers' URLs for a login: what is made on the primary is on its replica, too. */
  const urlsFor = (login: Login) => ({
    databaseUrl: urlFor(postgres.databaseUrl, login),
    readDatabaseUrl: urlFor(postgres.replicaUrl, login),
  });
  before(async () => {
    postgres = await startReplicatedPostgres();
    for (const login of logins) {
      for (const role of [API_ROLE, WORKER_ROLE])
        await createLogin(ownerUrlOf(postgres.databaseUrl), { ...login, role });
    }
    stack = await startTestStack(urlsFor(logins[0]));
    partner = await fundedPartner(stack);
  });
  after(async () => {
    await stack?.stop();
    await postgres.close();
  });

  it('replaces it, on the replica as well, and both work until the old one is dropped', async () => {
    const next = await startTestStack(
      { ...stack.config, ...urlsFor(logins[1]), port: await freePort() },
      { product: false },
    );
    const there = next.partnerHere(partner);
    for (const one of [partner, there]) {
      for (const mode of ['test', 'live'] as const) {
        assert.equal((await createCard(one, { amount: 1_000 }, { mode })).status, 201);
      }
      assert.equal((await one.call('GET', '/cards')).json.data.length, 1 + [partner, there].indexOf(one));
    }
    for (const { user } of logins) await until(`${user} reads lists from the replica`, () => isReadBy(user));

    await stack.stop();
    [stack, partner] = [next, there];
    await asOwner(stack, `DROP ROLE ${logins[0].user}`);
    for (const url of Object.values(urlsFor(logins[0])))
      await until('the old login is refused', async () => (await codeOfRefusal(url)) === '28P01');
    assert.equal((await createCard(there, { amount: 1_000 }, { mode: 'live' })).status, 201);
    assert.equal((await there.call('GET', '/cards', { mode: 'live' })).json.data.length, 3);
    assert.ok(await isReadBy(logins[1].user));
  });

  /** Whether this login's last statement on the replica was a list's; each look asks both processes for one. */
  async function isReadBy(user: string): Promise<boolean> {
    const calls = [stack.partnerHere(partner), partner].map((one) => one.call('GET', '/cards'));
    for (const { status } of await Promise.all(calls)) assert.equal(status, 200);
    const rows = await asOwner<{ query: string }>(
      postgres.replicaUrl,
      `SELECT query FROM pg_stat_activity WHERE application_name = 'card-issuing-lists' AND usename = '${user}'`,
    );
    return rows.some(({ query }) => query.includes('"card"'));
  }
});

/** PostgreSQL's code for why it lets nobody in; null if it does. */
async function codeOfRefusal(url: string): Promise<string | null> {
  const client = new pg.Client(url);
  try {
    await client.connect();
    await client.end();
    return null;
  } catch (error) {
    return (error as { code: string }).code;
  }
}

interface Login {
  user: string;
  password: string;
}
