import assert from 'node:assert/strict';
import { pino } from 'pino';
import { createApiKey, revokeApiKey } from '../../accounts/api-keys.ts';
import { suspendPartner, updatePartner } from '../../accounts/partners.ts';
import { startApi } from '../../api/server.ts';
import { pruneRevealLinks } from '../../cards/reveal-links.ts';
import { freePort } from '../../dev/free-port.ts';
import { parseBlock } from '../../domain/ip-address.ts';
import { type CardNetwork, CardNetworkUnavailable, type RevealRequest } from '../../issuers/card-network.ts';
import type { Config } from '../../platform/config/service.ts';
import { expectError } from '../support/api/answers.ts';
import { issueCard, reveal, revealCount, revealingPartner } from '../support/api/reveals.ts';
import { openBrowser } from '../support/api/workbench-browser.ts';
import { cardIn } from '../support/card-status.ts';
import { asOwner } from '../support/postgres.ts';
import { sharedStack } from '../support/shared-stack.ts';
import { partnerAt, startTestStack, type TestPartner, type TestStack } from '../support/stack.ts';
import { secretsIn, tableContents } from '../support/stored-data.ts';

const LOOPBACK = parseBlock('127.0.0.1') ?? assert.fail();

async function startHere(config: Config, aroundNetwork: (network: CardNetwork) => CardNetwork) {
  const api = await startApi(config, pino({ level: 'silent' }), { aroundNetwork });
  return { url: api.url, [Symbol.asyncDispose]: () => api.stop() };
}

describe('a reveal link', () => {
  let stack: TestStack;
  let partner: TestPartner;
  let cardId: string;
  before(async () => {
    // Each browser has an address of its own.
    stack = await startTestStack({ trustedProxies: [LOOPBACK] }, { worker: false });
  });
  after(() => stack.stop());
  beforeEach(async () => {
    partner = await revealingPartner(stack);
    cardId = await issueCard(partner, 'test', { cardholder_first_name: 'Ada' });
  });

  const ask = (body?: object, of = cardId) =>
    partner.call('POST', `/cards/${of}/reveal-links`, { body: body ?? {} });
  const make = async (body?: object): Promise<URL> => {
    const made = await ask(body);
    assert.equal(made.status, 201, made.text);
    return new URL(made.json.url);
  };
  const open = ({ pathname, hash }: URL, headers = {}, browser = openBrowser(stack)) =>
    browser.send('POST', pathname, { token: hash.slice(1) }, headers);
  const pageOf = (path: string) => fetch(`${stack.config.publicUrl}${path}`);
  const policyOf = async (path: string) => (await pageOf(path)).headers.get('content-security-policy') ?? '';

  it('shows what secure details have, once', async () => {
    const made = await ask();
    const { url, ...rest } = made.json;
    assert.match(url, new RegExp(`^${stack.config.publicUrl}/reveal/${rest.id}#[\\w-]{43}$`));
    assert.ok(Date.parse(rest.expires_at) - Date.now() <= 300_000);
    assert.deepEqual(Object.keys(rest).sort(), ['card_id', 'expires_at', 'id', 'mode', 'object']);
    const opened = await open(new URL(url));
    assert.equal(opened.status, 200, opened.text);
    assert.equal(opened.headers.get('cache-control'), 'no-store');
    assert.equal(opened.text, JSON.stringify((await reveal(partner, cardId)).json));
    expectError(await open(new URL(url)), 'reveal_link_used');
    assert.equal(await revealCount(stack, partner, 'test'), 2);
  });

  it('is opened by one of several at once', async () => {
    const url = await make();
    const answers = await Promise.all([1, 2, 3, 4, 5].map(() => open(url)));
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 410, 410, 410, 410]);
    assert.equal(await revealCount(stack, partner, 'test'), 1);
  });

  it('is spent by nothing but a POST of its own page', async () => {
    const url = await make();
    for (const method of ['GET', 'HEAD'])
      assert.equal((await fetch(`${stack.config.publicUrl}${url.pathname}`, { method })).status, 200);
    expectError(await open(url, { origin: 'https://evil.example' }), 'cross_origin');
    expectError(await open(url, { origin: '', 'sec-fetch-site': 'cross-site' }), 'cross_origin');
    const wrong = new URL(url);
    wrong.hash = 'x'.repeat(43);
    expectError(await open(wrong), 'reveal_link_used');
    wrong.hash = 'short';
    expectError(await open(wrong), 'validation_failed', ['token']);
    const other = await make();
    other.hash = url.hash;
    expectError(await open(other), 'reveal_link_used');
    assert.equal((await open(url)).status, 200);
  });

  it('leaves neither its token nor the card in a table or a log', async () => {
    const url = await make();
    const { json } = await open(url);
    for (const text of [...stack.logLines, ...Object.values(await tableContents(stack)).flat()]) {
      assert.ok(!text.includes(url.hash.slice(1)));
      assert.deepEqual(secretsIn(text, [json]), []);
    }
  });

  it('ends after 5 minutes, and with its key', async () => {
    const late = await make();
    await asOwner(stack, 'UPDATE reveal_link SET expires_at = now() WHERE card_id = $1', [cardId]);
    expectError(await open(late), 'reveal_link_used');
    const key = await createApiKey(stack.operator, { partnerId: partner.id, mode: 'test', name: null });
    const headers = { authorization: `Bearer ${key.key}` };
    const made = await partner.call('POST', `/cards/${cardId}/reveal-links`, { body: {}, headers });
    await revokeApiKey(stack.operator, key.id);
    expectError(await open(new URL(made.json.url)), 'reveal_link_used');
    assert.equal(await revealCount(stack, partner, 'test'), 0);
  });

  it('needs what secure details need, when it is made or when it is opened', async () => {
    const url = await make();
    expectError(await ask({}, 'card_x'), 'card_not_found');
    await updatePartner(stack.operator, partner.id, { secureDetailsEnabled: false });
    expectError(await ask(), 'secure_details_disabled');
    expectError(await open(url), 'secure_details_disabled');
    await updatePartner(stack.operator, partner.id, { secureDetailsEnabled: true });
    await partner.call('POST', `/cards/${cardId}/block`);
    expectError(await open(url), 'invalid_state');
    await suspendPartner(stack.operator, partner.id, 'test');
    expectError(await open(url), 'account_suspended');
    assert.equal(await revealCount(stack, partner, 'test'), 0);
  });

  for (const status of ['funding_pending', 'failed'] as const) {
    it(`is not made of a card that was not issued: ${status}`, async () => {
      const unissued = await cardIn(stack, partner, 'test', status);
      const refused = await ask({}, unissued);
      expectError(refused, 'invalid_state');
      assert.match(
        refused.json.error.message,
        new RegExp(`^The card is ${status}\\. Only active and frozen`),
      );
    });
  }

  it('counts as a reveal: 3 a minute, together with those of the API, and stays if there are more', async () => {
    const url = await make();
    for (let i = 0; i < 3; i++) assert.equal((await reveal(partner, cardId)).status, 200);
    const limited = await open(url);
    expectError(limited, 'reveal_limit_reached');
    assert.ok(Number(limited.headers.get('retry-after')) >= 1);
    await asOwner(
      stack,
      `UPDATE card_reveal SET created_at = created_at - interval '2 minutes' WHERE partner_id = $1`,
      [partner.id],
    );
    assert.equal((await open(url)).status, 200);
  });

  it('fails closed if it can not be counted', async () => {
    const url = await make();
    await asOwner(stack, 'REVOKE INSERT ON card_reveal FROM card_issuing_api');
    expectError(await open(url), 'reveal_limit_reached');
    await asOwner(stack, 'GRANT INSERT ON card_reveal TO card_issuing_api');
    assert.equal((await open(url)).status, 200);
  });

  it('may be embedded by the origins that it names, and has the theme that it asks for', async () => {
    const { pathname } = await make({
      frame_origins: ['https://app.example.com', 'https://b.example:8443'],
      theme: 'dark',
    });
    assert.match(
      await policyOf(pathname),
      /^default-src 'none'; script-src 'self'; .*frame-ancestors https:\/\/app\.example\.com https:\/\/b\.example:8443$/,
    );
    const page = await pageOf(pathname);
    assert.equal(page.headers.get('x-frame-options'), null);
    assert.equal(page.headers.get('referrer-policy'), 'no-referrer');
    assert.equal(page.headers.get('cache-control'), 'no-store');
    assert.match(await page.text(), /<html lang="en" data-theme="dark">/);
    for (const path of [(await make()).pathname, '/reveal/rvl_x', '/reveal/card_1']) {
      assert.match(await policyOf(path), /frame-ancestors 'none'$/);
      assert.notEqual((await pageOf(path)).headers.get('x-frame-options'), null);
    }
    for (const name of ['page.js', 'page.css']) assert.equal((await pageOf(`/reveal/${name}`)).status, 200);
  });

  it('refuses to be embedded by what is not the origin of an https page', async () => {
    for (const origin of [
      ...['http://a.example', 'https://a.example/', 'https://*.example', 'https://A.example', 'null', ''],
      "https://a.example; script-src 'unsafe-inline'",
    ])
      expectError(await ask({ frame_origins: [origin] }), 'validation_failed', ['frame_origins.0']);
  });

  it('is one of at most 100 that nobody has opened', async () => {
    await make();
    await asOwner(
      stack,
      `INSERT INTO reveal_link SELECT 'rvl_' || $1 || lpad(n::text, 3, '0'), partner_id, mode, card_id, api_key_id, token_hash, frame_origins, theme, expires_at
       FROM reveal_link, generate_series(1, 99) n WHERE card_id = $2`,
      [cardId.slice(5, 28), cardId],
    );
    expectError(await ask(), 'limit_exceeded');
    await asOwner(stack, "UPDATE reveal_link SET expires_at = now() - interval '2 days' WHERE card_id = $1", [
      cardId,
    ]);
    while ((await pruneRevealLinks(stack.orm, 10)) > 0);
    const left = await asOwner(stack, 'SELECT 1 FROM reveal_link WHERE card_id = $1', [cardId]);
    assert.equal(left.length, 0);
    await make();
  });

  it('stays if the card network gives no answer, which counts as a reveal', async () => {
    const full = await sharedStack();
    const own = await revealingPartner(full);
    const id = await issueCard(own, 'live');
    const port = await freePort();
    const config = { ...full.config, port, publicUrl: `http://127.0.0.1:${port}` };
    let isSilent = true;
    await using api = await startHere(config, (network) =>
      Object.create(network, {
        revealCard: {
          value: (card: RevealRequest) =>
            isSilent ? Promise.reject(new CardNetworkUnavailable('silent')) : network.revealCard(card),
        },
      }),
    );
    const made = await partnerAt(own, api.url).call('POST', `/cards/${id}/reveal-links`, {
      mode: 'live',
      body: {},
    });
    const browser = openBrowser({ config });
    expectError(await open(new URL(made.json.url), {}, browser), 'unavailable');
    isSilent = false;
    assert.match((await open(new URL(made.json.url), {}, browser)).json.pan, /^\d{16}$/);
    expectError(await open(new URL(made.json.url), {}, browser), 'reveal_link_used');
    assert.equal(await revealCount(full, own, 'live'), 2);
  });

  it('is what a workbench session reads the card with', async () => {
    const session = (await partner.call('POST', '/workbench-sessions', { body: {} })).json;
    const browser = openBrowser(stack);
    await browser.exchange(new URL(session.url).hash.slice(1));
    const made = await browser.ask('POST', `/cards/${cardId}/reveal-links`, session.id, {});
    assert.equal((await open(new URL(made.json.url), {}, browser)).status, 200);
  });
});
