import assert from 'node:assert/strict';
import { revokeApiKey } from '../../accounts/api-keys.ts';
import { resumePartner, suspendPartner, updatePartner } from '../../accounts/partners.ts';
import { Scope } from '../../accounts/scope-rules.ts';
import { pruneWorkbenchSessions } from '../../accounts/workbench-sessions.ts';
import type { ErrorCode } from '../../domain/error-catalogue.ts';
import { parseBlock } from '../../domain/ip-address.ts';
import type { Mode } from '../../domain/mode.ts';
import { expectError } from '../support/api/answers.ts';
import { withNewKey } from '../support/api/keys.ts';
import { type Browser, openBrowser } from '../support/api/workbench-browser.ts';
import { createCard } from '../support/cards.ts';
import { fundedPartner } from '../support/money.ts';
import { asOwner } from '../support/postgres.ts';
import { startTestStack, type TestPartner, type TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';

const LOOPBACK = parseBlock('127.0.0.1') ?? assert.fail();

describe('a workbench session', () => {
  let stack: TestStack;
  let partner: TestPartner;
  before(async () => {
    // Each browser has an address of its own.
    stack = await startTestStack({ trustedProxies: [LOOPBACK] }, { worker: false });
    partner = await fundedPartner(stack, 10_000);
  });
  after(() => stack.stop());

  const make = async (of = partner, body: object = {}, mode: Mode = 'test') => {
    const made = await of.call('POST', '/workbench-sessions', { body, mode });
    assert.equal(made.status, 201, made.text);
    return made.json;
  };
  const tokenIn = ({ url }: { url: string }) => new URL(url).hash.slice(1);
  /** A browser that has opened a new link. */
  const opened = async (of = partner, body: object = {}, browser = openBrowser(stack)) => {
    const made = await make(of, body);
    const answer = await browser.exchange(tokenIn(made));
    assert.equal(answer.status, 200, answer.text);
    return { browser, id: made.id as string };
  };
  const isRefused = (browser: Browser, id: string) =>
    until('the session is refused', async () => (await browser.ask('GET', '/ping', id)).status === 401);

  it('is made with a link whose token is in the fragment, and shown once', async () => {
    const made = await make(partner, { scopes: ['cards:read'], expires_in_seconds: 300 });
    const { url, ...shown } = made;
    assert.match(url, new RegExp(`^${stack.config.publicUrl}/workbench/#[\\w-]{43}$`));
    assert.equal(shown.status, 'unopened');
    assert.equal(Date.parse(shown.expires_at) - Date.parse(shown.created), 300_000);
    assert.equal(Date.parse(shown.url_expires_at) - Date.parse(shown.created), 300_000);
    const list = await partner.call('GET', '/workbench-sessions?limit=1');
    assert.deepEqual(list.json.data, [shown]);
    const { scopes } = await make();
    assert.deepEqual(
      scopes,
      Scope.options.filter((scope) => scope !== 'api_keys:write' && scope !== 'workbench:write'),
    );
  });

  it('keeps neither token in clear, and no log has one', async () => {
    const made = await make();
    const browser = openBrowser(stack);
    await browser.exchange(tokenIn(made));
    const [row] = await asOwner(
      stack,
      `SELECT to_jsonb(s)::text AS row FROM workbench_session s WHERE id = '${made.id}'`,
    );
    for (const token of [tokenIn(made), browser.cookies.values().next().value ?? 'none']) {
      assert.ok(!String(row?.row).includes(token));
      assert.ok(!String(row?.row).includes(Buffer.from(token).toString('hex')));
      assert.ok(!stack.logLines.some((line) => line.includes(token)));
    }
  });

  it('is an API key in a cookie: it does what its scopes allow, and what it makes is made by its key', async () => {
    const { browser, id } = await opened(partner, { scopes: ['cards:read', 'balance:read'] });
    const ping = await browser.ask('GET', '/ping', id);
    assert.deepEqual([ping.status, ping.json.partner_id], [200, partner.id], ping.text);
    assert.equal((await browser.ask('GET', '/balance', id)).status, 200);
    expectError(await browser.ask('POST', '/cards', id, { amount: 100 }), 'insufficient_scope');
    expectError(await browser.ask('GET', '/workbench-sessions', id), 'insufficient_scope');
  });

  it('makes keys that are no wider than itself, by its key', async () => {
    const wide = await withNewKey(stack, partner, { scopes: Scope.options });
    const { browser, id } = await opened(wide, { scopes: ['cards:read', 'api_keys:write'] });
    const wider = { name: 'x', scopes: ['cards:write'] };
    expectError(await browser.ask('POST', '/api-keys', id, wider), 'insufficient_scope');
    const key = await browser.ask('POST', '/api-keys', id, { name: 'x' });
    assert.deepEqual([key.json.scopes, key.json.created_by], [['cards:read'], wide.keyId], key.text);
    assert.ok(!(await browser.ask('GET', '/api-keys', id)).text.includes('wbs_'));
  });

  it("can't be made wider than its key, nor to make others", async () => {
    const narrow = await withNewKey(stack, partner, { scopes: ['workbench:write', 'cards:read'] });
    const ask = (body: object) => narrow.call('POST', '/workbench-sessions', { body });
    expectError(await ask({ scopes: ['balance:read'] }), 'insufficient_scope');
    expectError(await ask({ scopes: ['workbench:write'] }), 'validation_failed', ['scopes.0']);
    expectError(await ask({ expires_in_seconds: 299 }), 'validation_failed', ['expires_in_seconds']);
    assert.deepEqual((await ask({})).json.scopes, ['cards:read']);
  });

  it('never reads secure details itself', async () => {
    await updatePartner(stack.operator, partner.id, { secureDetailsEnabled: true });
    const cardId = (await createCard(partner, { amount: 1_000 })).json.id;
    const { browser, id } = await opened();
    expectError(await browser.ask('GET', `/cards/${cardId}/secure-details`, id), 'insufficient_scope');
  });

  describe('is opened', () => {
    it('once, by a POST of its own page', async () => {
      const made = await make();
      const other = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' };
      expectError(await openBrowser(stack).exchange(tokenIn(made), {}, other), 'cross_origin');
      const browser = openBrowser(stack);
      const answer = await browser.exchange(tokenIn(made));
      assert.deepEqual(answer.json, {
        object: 'workbench_session',
        id: made.id,
        account: { id: partner.id, name: 'Test Partner' },
        mode: 'test',
        scopes: made.scopes,
        expires_at: made.expires_at,
        created: made.created,
      });
      assert.match(
        answer.headers.get('set-cookie') ?? '',
        /^wb-test-\d+=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/,
      );
      expectError(await openBrowser(stack).exchange(tokenIn(made)), 'invalid_api_key');
      const session = await browser.send('GET', '/workbench/session?mode=test');
      assert.deepEqual(session.json, answer.json);
      expectError(await browser.send('GET', '/workbench/session?mode=live'), 'invalid_api_key');
    });

    it('not after 5 minutes, nor after it was ended, nor from where its key may not be used', async () => {
      const late = await make();
      await asOwner(stack, `UPDATE workbench_session SET link_expires_at = now() WHERE id = '${late.id}'`);
      expectError(await openBrowser(stack).exchange(tokenIn(late)), 'invalid_api_key');
      const ended = await make();
      assert.equal((await partner.call('DELETE', `/workbench-sessions/${ended.id}`)).status, 204);
      expectError(await openBrowser(stack).exchange(tokenIn(ended)), 'invalid_api_key');
      const far = await make();
      await asOwner(
        stack,
        `UPDATE api_key SET ip_allowlist = '{203.0.113.7}' WHERE id = '${far.api_key_id}'`,
      );
      expectError(await openBrowser(stack).exchange(tokenIn(far)), 'ip_not_allowed');
      await asOwner(stack, `UPDATE api_key SET ip_allowlist = NULL WHERE id = '${far.api_key_id}'`);
      for (const token of ['', 'x'.repeat(42), "' OR 1=1"])
        expectError(await openBrowser(stack).exchange(token), 'validation_failed', ['token']);
    });

    it("in place of another account's only if it is asked to, and then that one ends", async () => {
      const stranger = await stack.createPartner('Stranger');
      const { browser, id } = await opened();
      const made = await make(stranger);
      const asked = await browser.exchange(tokenIn(made));
      assert.equal(asked.status, 409, asked.text);
      assert.equal(asked.json.workbench_session.id, id);
      assert.equal((await browser.ask('GET', '/ping', id)).status, 200);
      const replaced = await browser.exchange(tokenIn(made), { replace: true });
      assert.deepEqual([replaced.status, replaced.json.account.id], [200, stranger.id], replaced.text);
      expectError(await browser.ask('GET', '/ping', id), 'workbench_session_mismatch');
      const [ended] = (await partner.call('GET', '/workbench-sessions?limit=1')).json.data;
      assert.deepEqual([ended.id, ended.status], [id, 'ended']);
    });
  });

  describe('does nothing for', () => {
    const elsewhere = (origin: string, site: string) => ({ origin, 'sec-fetch-site': site });
    const REFUSED: [who: string, code: ErrorCode, headers: Record<string, string>][] = [
      ["another site's page", 'cross_origin', elsewhere('https://evil.example', 'cross-site')],
      ['a page of the same site', 'cross_origin', elsewhere('', 'same-site')],
      ['a typed address', 'cross_origin', elsewhere('', 'none')],
      ['an opaque origin', 'cross_origin', elsewhere('null', 'same-origin')],
      ['a page that names no session', 'workbench_session_mismatch', { 'workbench-session': '' }],
      ['a page that names two', 'workbench_session_mismatch', { 'workbench-session': 'wbs_1, wbs_2' }],
    ];
    for (const [who, code, headers] of REFUSED) {
      it(who, async () => {
        const { browser, id } = await opened();
        const body = { type: 'card_issue', amount: 100 };
        expectError(await browser.ask('POST', '/quotes', id, body, headers), code);
      });
    }

    it('a tab that shows another session', async () => {
      const { browser, id: first } = await opened();
      const { id: second } = await opened(partner, {}, browser);
      expectError(await browser.ask('GET', '/ping', first), 'workbench_session_mismatch');
      assert.equal((await browser.ask('GET', '/ping', second)).status, 200);
    });

    it('a request with an Authorization header, which counts alone', async () => {
      const { browser, id } = await opened();
      const authorization = `Bearer ${partner.keys.live}`;
      const headers = { authorization, origin: 'https://evil.example' };
      assert.equal((await browser.ask('GET', '/ping', id, undefined, headers)).json.mode, 'live');
    });
  });

  describe('ends within seconds', () => {
    it('when it is ended, and can be ended twice', async () => {
      const { browser, id } = await opened();
      assert.equal((await browser.ask('GET', '/ping', id)).status, 200);
      for (const _ of [1, 2])
        assert.equal((await partner.call('DELETE', `/workbench-sessions/${id}`)).status, 204);
      await isRefused(browser, id);
      const other = await stack.createPartner();
      expectError(await other.call('DELETE', `/workbench-sessions/${id}`), 'workbench_session_not_found');
    });

    it('when its browser signs out, which clears the cookie', async () => {
      const { browser, id } = await opened();
      const path = '/workbench/session?mode=test';
      const shown = { 'workbench-session': id };
      const answer = await browser.send('DELETE', path, undefined, shown);
      assert.equal(answer.status, 204);
      assert.match(answer.headers.get('set-cookie') ?? '', /^wb-test-\d+=; .*Max-Age=0$/);
      const [ended] = (await partner.call('GET', '/workbench-sessions?limit=1')).json.data;
      assert.deepEqual([ended.id, ended.status], [id, 'ended']);
      assert.equal((await browser.send('DELETE', path, undefined, shown)).status, 204);
    });

    it('only for a tab that shows it', async () => {
      const { browser, id: shown } = await opened();
      const { id } = await opened(partner, {}, browser);
      for (const named of [shown, '']) {
        const headers = { 'workbench-session': named };
        const answer = await browser.send('DELETE', '/workbench/session?mode=test', undefined, headers);
        expectError(answer, 'workbench_session_mismatch');
      }
      assert.equal((await browser.ask('GET', '/ping', id)).status, 200);
    });

    it('with its key', async () => {
      const short = await withNewKey(stack, partner);
      const { browser, id } = await opened(short);
      assert.equal((await browser.ask('GET', '/ping', id)).status, 200);
      await revokeApiKey(stack.operator, short.keyId);
      await isRefused(browser, id);
    });

    it("with its account's suspension, for good", async () => {
      const other = await stack.createPartner();
      const { browser, id } = await opened(other);
      await suspendPartner(stack.operator, other.id, 'test');
      await until(
        'the session is refused',
        async () => (await browser.ask('GET', '/ping', id)).status !== 200,
      );
      await resumePartner(stack.operator, other.id, 'test');
      await isRefused(browser, id);
    });

    it('when its time is over, whatever the sandbox clock shows', async () => {
      const other = await stack.createPartner();
      const { browser, id } = await opened(other);
      await other.call('POST', '/test/clock/advance', { body: { seconds: 86_400 } });
      assert.equal((await browser.ask('GET', '/ping', id)).status, 200);
      await asOwner(stack, `UPDATE workbench_session SET expires_at = now() WHERE id = '${id}'`);
      await isRefused(browser, id);
    });
  });

  it('is one of at most 100 of an account and mode', async () => {
    const other = await stack.createPartner();
    const { api_key_id: keyId } = await make(other);
    await asOwner(
      stack,
      `INSERT INTO workbench_session (id, partner_id, mode, api_key_id, scopes, link_hash, link_expires_at, expires_at)
       SELECT 'wbs_0000000000000000000000' || lpad(n::text, 4, '0'), '${other.id}', 'test', '${keyId}', '{}', sha256(('${other.id}' || n)::bytea),
         now() + interval '1 minute', now() + interval '1 hour' FROM generate_series(1, 99) n`,
    );
    expectError(await other.call('POST', '/workbench-sessions', { body: {} }), 'limit_exceeded');
    await make(other, {}, 'live');
  });

  it('is deleted a week after its end', async () => {
    const made = await make();
    await asOwner(
      stack,
      `UPDATE workbench_session SET expires_at = now() - interval '8 days' WHERE id = '${made.id}'`,
    );
    while ((await pruneWorkbenchSessions(stack.orm, 10)) > 0);
    const deleted = await partner.call('DELETE', `/workbench-sessions/${made.id}`);
    expectError(deleted, 'workbench_session_not_found');
  });

  it('is opened at most ten times a minute from an address', async () => {
    const own = openBrowser(stack);
    const answers = [];
    for (let i = 0; i < 40 && answers.at(-1) !== 429; i++)
      answers.push((await own.exchange('x'.repeat(43))).status);
    assert.equal(answers.at(-1), 429);
  });

  it('has a cookie that travels over TLS alone, and belongs to its host, if browsers reach it by https', async () => {
    const publicUrl = 'https://api.example.com';
    const secure = await startTestStack({ publicUrl }, { worker: false });
    try {
      const { json } = await (await fundedPartner(secure)).call('POST', '/workbench-sessions', { body: {} });
      assert.ok(json.url.startsWith(`${publicUrl}/workbench/#`));
      const address = `http://127.0.0.1:${secure.config.port}`;
      const response = await fetch(`${address}/workbench/session`, {
        method: 'POST',
        headers: { origin: publicUrl, 'content-type': 'application/json' },
        body: JSON.stringify({ token: tokenIn(json) }),
      });
      assert.equal(response.status, 200);
      const [cookie = ''] = response.headers.getSetCookie();
      assert.match(cookie, /^__Host-wb-test=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Secure$/);
      const asked = await fetch(`${address}/v1/ping`, {
        headers: { cookie: cookie.split(';')[0] ?? '', origin: publicUrl, 'workbench-session': json.id },
      });
      assert.equal(asked.status, 200);
    } finally {
      await secure.stop();
    }
  });
});
