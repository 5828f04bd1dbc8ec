import assert from 'node:assert/strict';
import pino from 'pino';
import { startApi } from '../../api/server.ts';
import { freePort } from '../../dev/free-port.ts';
import { expectError } from '../support/api/answers.ts';
import { reveal, revealCount, revealingPartner } from '../support/api/reveals.ts';
import { createCard } from '../support/cards.ts';
import { asOwner, createTestDatabase } from '../support/postgres.ts';
import { startTcpProxy, type TcpProxy } from '../support/sockets.ts';
import { startTestStack, type TestPartner, type TestStack } from '../support/stack.ts';

describe('GET /cards/{cardId}/secure-details', () => {
  let proxy: TcpProxy;
  let stack: TestStack;
  let partner: TestPartner;
  let cards: { test: string; live: string };
  before(async () => {
    const url = new URL(await createTestDatabase());
    proxy = await startTcpProxy(url.host);
    url.host = proxy.address;
    stack = await startTestStack({ databaseUrl: url.href, cardCreationWaitMs: 30_000 });
  });
  after(async () => {
    await stack.stop();
    await proxy.cut();
  });
  beforeEach(async () => {
    partner = await revealingPartner(stack);
    const create = async (mode: 'test' | 'live') =>
      (await createCard(partner, { amount: 1_000 }, { mode })).json.id;
    cards = { test: await create('test'), live: await create('live') };
  });

  const uncountable: Record<string, [breaking: string, mending: string]> = {
    'no attempt can be written': [
      'REVOKE INSERT ON card_reveal FROM card_issuing_api',
      'GRANT INSERT ON card_reveal TO card_issuing_api',
    ],
    'the attempts cannot be read': [
      'REVOKE SELECT ON card_reveal FROM card_issuing_app',
      'GRANT SELECT ON card_reveal TO card_issuing_app',
    ],
    'the table is gone': ['ALTER TABLE card_reveal RENAME TO away', 'ALTER TABLE away RENAME TO card_reveal'],
    'the commit fails': [
      `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$;
       CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON card_reveal DEFERRABLE INITIALLY DEFERRED
         FOR EACH ROW EXECUTE FUNCTION refuse()`,
      'DROP TRIGGER refuse ON card_reveal; DROP FUNCTION refuse',
    ],
  };
  for (const [name, [breaking, mending]] of Object.entries(uncountable)) {
    it(`answers 429, never the card, if ${name}`, async () => {
      await asOwner(stack, breaking);
      for (const mode of ['test', 'live'] as const) {
        const answer = await reveal(partner, cards[mode], mode);
        expectError(answer, 'reveal_limit_reached');
        assert.match(answer.json.error.message, /cannot be revealed right now/);
        assert.ok(Number(answer.headers.get('retry-after')) >= 1);
      }
      await asOwner(stack, mending);
      for (const mode of ['test', 'live'] as const) {
        assert.equal((await reveal(partner, cards[mode], mode)).status, 200);
        assert.equal(await revealCount(stack, partner, mode), 1);
      }
    });
  }

  it('answers 429 if an account has no row to be counted in', async () => {
    await asOwner(stack, 'DELETE FROM account_usage WHERE partner_id = $1', [partner.id]);
    expectError(await reveal(partner, cards.test), 'reveal_limit_reached');
  });

  it('returns no card while PostgreSQL is away', async () => {
    await reveal(partner, cards.test);
    await proxy.cut();
    for (const mode of ['test', 'live'] as const) {
      const { status, text } = await reveal(partner, cards[mode], mode);
      // 503 once the process asks again whose key it is.
      assert.ok([429, 503].includes(status), text);
    }
    await proxy.restore();
    assert.equal((await reveal(partner, cards.test)).status, 200);
  });

  it('answers 503 while the network is away, and counts such attempts', async () => {
    await asOwner(stack, 'ALTER SCHEMA simulated_network RENAME TO away');
    const first = await reveal(partner, cards.live, 'live');
    expectError(first, 'unavailable');
    assert.match(first.json.error.message, /network is not responding/);
    assert.equal(first.headers.get('cache-control'), 'no-store');
    expectError(await reveal(partner, cards.live, 'live'), 'unavailable');
    assert.equal((await reveal(partner, cards.test)).status, 200);
    await asOwner(stack, 'ALTER SCHEMA away RENAME TO simulated_network');
    assert.equal((await reveal(partner, cards.live, 'live')).status, 200);
    expectError(await reveal(partner, cards.live, 'live'), 'reveal_limit_reached');
  });

  it('answers 503 for a live card if no network is configured', async () => {
    const port = await freePort();
    const api = await startApi({ ...stack.config, port, cardNetwork: 'none' }, pino({ level: 'silent' }));
    try {
      const get = (mode: 'test' | 'live') =>
        fetch(`${api.url}/cards/${cards[mode]}/secure-details`, {
          headers: { authorization: `Bearer ${partner.keys[mode]}` },
        });
      const live = await get('live');
      expectError({ status: live.status, headers: live.headers, text: await live.text() }, 'unavailable');
      assert.equal((await get('test')).status, 200);
    } finally {
      await api.stop();
    }
  });
});
