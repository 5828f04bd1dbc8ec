import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { freePort } from '../../../dev/free-port.ts';
import { createLogin, urlFor } from '../../../dev/postgres/logins.ts';
import { createCard } from '../../support/cards.ts';
import { fundedPartner } from '../../support/money.ts';
import { environmentOf, type Operate, operateIn } from '../../support/operator/operate.ts';
import { asOwner, createTestDatabase, ownerUrlOf } from '../../support/postgres.ts';
import { startTestStack, type TestPartner, type TestStack } from '../../support/stack.ts';
import { until } from '../../support/until.ts';

describe('while the service runs,', () => {
  const logins = ['before', 'after'].map((name) => ({
    ...{ user: `rotated_${name}_${process.pid}`, password: randomUUID(), role: 'card_issuing_app' },
  })) as [Login, Login];
  let stack: TestStack;
  let partner: TestPartner;
  let operate: Operate;
  before(async () => {
    const databaseUrl = await createTestDatabase();
    for (const login of logins) await createLogin(ownerUrlOf(databaseUrl), login);
    stack = await startTestStack({ databaseUrl: urlFor(databaseUrl, logins[0]) });
    partner = await fundedPartner(stack);
    operate = operateIn(environmentOf(stack.config));
  });
  after(async () => {
    await stack.stop();
    await asOwner(stack, `DROP ROLE IF EXISTS ${logins.map(({ user }) => user).join(', ')}`);
  });

  it("a partner's API key is replaced: both work until the old one is revoked, which is then refused", async () => {
    const { json } = await operate('key', 'create', partner.id, '--mode', 'test', '--name', '2027');
    const renewed = stack.partnerHere({ ...partner, keys: { ...partner.keys, test: json.key } });
    const statuses = () =>
      Promise.all([partner, renewed].map(async (one) => (await one.call('GET', '/balance')).status));
    assert.deepEqual(await statuses(), [200, 200]);
    const keys = (await operate('key', 'list', partner.id)).json as { id: string; mode: string }[];
    const old = keys.find(({ id, mode }) => mode === 'test' && id !== json.id);
    assert.equal((await operate('key', 'revoke', old?.id ?? '')).code, 0);
    await until('the old key is refused', async () => (await statuses())[0] === 401);
    assert.deepEqual(await statuses(), [401, 200]);
    partner = renewed;
  });

  it('the database login is replaced: both serve, and the old one is refused once it is dropped', async () => {
    const databaseUrl = urlFor(stack.config.databaseUrl, logins[1]);
    const next = await startTestStack(
      { ...stack.config, databaseUrl, port: await freePort() },
      { product: false },
    );
    const there = next.partnerHere(partner);
    for (const one of [partner, there]) {
      for (const mode of ['test', 'live'] as const) {
        assert.equal((await createCard(one, { amount: 1_000 }, { mode })).status, 201);
      }
    }
    await stack.stop();
    stack = next;
    await asOwner(stack, `DROP ROLE ${logins[0].user}`);
    await assert.rejects(new pg.Client(urlFor(databaseUrl, logins[0])).connect());
    assert.equal((await createCard(there, { amount: 1_000 }, { mode: 'live' })).status, 201);
  });
});

interface Login {
  user: string;
  password: string;
  role: string;
}
