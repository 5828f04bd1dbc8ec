import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import type { Browser } from 'playwright-core';
import { startApi } from '../../../api/server.ts';
import { seedCards } from '../../../bench/support/seed.ts';
import { setCurrentProduct } from '../../../cards/products.ts';
import { freePort } from '../../../dev/free-port.ts';
import { unrestrictedPartner } from '../../support/api/accounts.ts';
import { createCard } from '../../support/cards.ts';
import { partnerAt, type TestPartner, type TestStack } from '../../support/stack.ts';
import { until } from '../../support/until.ts';
import { openTab, startWorkbench } from '../../support/workbench.ts';

describe('a session of the workbench, in a browser', () => {
  let browser: Browser;
  let stack: TestStack;
  let partner: TestPartner;
  before(async function () {
    ({ browser, stack } = await startWorkbench(this, { worker: false }));
  });
  beforeEach(async () => {
    partner = await unrestrictedPartner(stack);
  });
  afterEach(async () => {
    for (const context of browser.contexts()) await context.close();
  });
  after(async () => {
    await browser?.close();
    await stack?.stop();
  });

  it('keeps the token of its link out of the address bar and of all requests but one', async () => {
    const { page, sent, complaints } = await openTab(browser, partner);
    await page.getByRole('heading', { name: 'Home', level: 1 }).waitFor();
    assert.equal(new URL(page.url()).hash, '');
    const [exchange, ...others] = sent.filter((request) => /token/.test(request));
    const { token } = JSON.parse(exchange?.replace(/^POST \/workbench\/session /, '') ?? '');
    assert.match(token, /^[\w-]{43}$/);
    assert.deepEqual(others, []);
    assert.equal(sent.filter((request) => request.includes(token)).length, 1);
    await page.goBack();
    assert.ok(!page.url().includes(token));
    assert.deepEqual(complaints, []);
  });

  it('opens no link twice, and says what to do instead', async () => {
    const { json } = await partner.call('POST', '/workbench-sessions', { body: {} });
    const context = await browser.newContext({ extraHTTPHeaders: { 'x-forwarded-for': '10.8.0.1' } });
    const page = await context.newPage();
    await page.goto(json.url);
    await page.getByRole('heading', { name: 'Home', level: 1 }).waitFor();
    const other = await browser.newContext({ extraHTTPHeaders: { 'x-forwarded-for': '10.8.0.2' } });
    const second = await other.newPage();
    await second.goto(json.url);
    await second.getByText(/This link was opened before/).waitFor();
    await second.getByText('npm run workbench').waitFor();
    const { json: fresh } = await partner.call('POST', '/workbench-sessions', { body: {} });
    await second.getByLabel('Link').fill('https://example.com');
    await second.getByRole('button', { name: 'Open' }).click();
    await second.getByText('That isn’t a workbench link.').waitFor();
    await second.getByLabel('Link').fill(fresh.url);
    await second.getByRole('button', { name: 'Open' }).click();
    await second.getByRole('heading', { name: 'Home', level: 1 }).waitFor();
  });

  it('opens a new link in the tab of an old one, and keeps that out of the address bar, too', async () => {
    const { json } = await partner.call('POST', '/workbench-sessions', { body: {} });
    const { page } = await openTab(browser, partner);
    await page.goto(`${new URL(json.url).origin}/workbench/#${'x'.repeat(43)}`);
    await page.getByText(/This link was opened before/).waitFor();
    await page.goto(json.url);
    await page.getByRole('heading', { name: 'Home', level: 1 }).waitFor();
    assert.equal(new URL(page.url()).hash, '');
    await page.goBack();
    assert.equal(new URL(page.url()).hash, '');
  });

  it('shows nothing more once it is ended by the API', async () => {
    const { page, sessionId, says } = await openTab(browser, partner);
    await page.getByText('$10,000.00').first().waitFor();
    assert.equal((await partner.call('DELETE', `/workbench-sessions/${sessionId}`)).status, 204);
    await says('This session has ended');
    assert.equal(await page.getByText('$10,000.00').count(), 0);
    await page.reload();
    await says('Open the workbench in test mode');
  });

  it('says in its other tabs that it was ended', async () => {
    const tab = await openTab(browser, partner);
    const other = await tab.context.newPage();
    await other.goto(tab.page.url());
    await other.getByText('$10,000.00').first().waitFor();
    await tab.press('Sign out');
    await other.getByRole('heading', { name: 'This session has ended' }).waitFor();
    const words = await other.getByRole('alert').textContent();
    assert.match(words ?? '', /you signed out in another tab\. Ask for a new link\.$/);
  });

  it('ends when somebody signs out, and says so and stays if that fails', async () => {
    const { page, press, says } = await openTab(browser, partner);
    const status = async () => (await partner.call('GET', '/workbench-sessions')).json.data[0].status;
    await page.getByRole('heading', { name: 'Home', level: 1 }).waitFor();
    await page.route('**/workbench/session?mode=test', (route) => route.abort());
    await press('Sign out');
    await page.getByRole('alert').getByText('The connection to').waitFor();
    assert.equal(await status(), 'open');
    await page.unroute('**/workbench/session?mode=test');
    await press('Sign out');
    await says('Open the workbench in test mode');
    assert.equal(await status(), 'ended');
  });

  it('of another account asks before it replaces the one that is open, whose tabs then do nothing', async () => {
    const other = await unrestrictedPartner(stack);
    const first = await openTab(browser, partner);
    await first.page.getByRole('heading', { name: 'Home', level: 1 }).waitFor();
    const second = await openTab(browser, other, { context: first.context });
    await second.says('Open another account?');
    assert.equal((await partner.call('GET', '/workbench-sessions')).json.data[0].status, 'open');
    await second.press('Open the new account');
    await second.page.getByRole('heading', { name: 'Home', level: 1 }).waitFor();
    await first.says('Another session is open in this browser');
    assert.equal((await partner.call('GET', '/workbench-sessions')).json.data[0].status, 'ended');
    assert.deepEqual([...first.complaints, ...second.complaints], []);
  });

  it('shows test and live in two tabs at once, each its own', async () => {
    const test = await openTab(browser, partner);
    await test.page.getByText('$10,000.00').first().waitFor();
    const live = await openTab(browser, partner, { mode: 'live', context: test.context });
    await live.says('This is real money.');
    await live.choose('Cards');
    await live.says('No cards yet');
    await createCard(partner, { amount: 1_000, external_ref: 'of-test' });
    await test.choose('Cards');
    await test.says('of-test');
    await live.page.reload();
    await live.says('No cards yet');
    assert.equal(await live.page.getByRole('link', { name: 'Test clock' }).count(), 0);
    assert.match(live.page.url(), /\/workbench\/live\/cards$/);
  });

  it('can neither be read nor used by a page of another origin', async () => {
    const tab = await openTab(browser, partner);
    await tab.page.getByRole('heading', { name: 'Home', level: 1 }).waitFor();
    const target = stack.config.publicUrl;
    const server = createServer((_, response) => {
      response.setHeader('content-type', 'text/html');
      response.end(`<!doctype html>
        <form method="post" action="${target}/v1/test/credit" enctype="text/plain"><input name='{"amount":1}' value=""></form>
        <iframe src="${target}/workbench/test"></iframe>`);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const evil = await tab.context.newPage();
    const refused: string[] = [];
    evil.on('console', (message) => refused.push(message.text()));
    await evil.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    const read = await evil.evaluate(
      `fetch('${target}/v1/balance', { credentials: 'include' }).then((r) => r.text(), (e) => String(e))`,
    );
    assert.match(String(read), /Failed to fetch/);
    const written = await evil.evaluate(`fetch('${target}/v1/test/credit', { method: 'POST', mode: 'no-cors',
      credentials: 'include', body: '{"amount":1}' }).then((r) => r.type, (e) => String(e))`);
    assert.match(String(written), /opaque|Failed to fetch/);
    await until('the browser refuses the frame', () => refused.some((text) => /frame-ancestors/.test(text)));
    const submitted = evil.waitForResponse(/\/v1\/test\/credit/);
    await evil.evaluate(`document.forms[0].submit()`);
    assert.ok((await submitted).status() >= 400);
    assert.equal((await partner.call('GET', '/balance')).json.total, 1_000_000);
    server.close();
  });

  it('offers only what its scopes allow', async () => {
    const { json } = await createCard(partner, { amount: 1_000 });
    const { page, visit, complaints, sent } = await openTab(browser, partner, {
      scopes: ['cards:read'],
    });
    const places = page.getByRole('navigation', { name: 'Pages' }).getByRole('listitem');
    await page.getByRole('heading', { name: 'Home', level: 1 }).waitFor();
    assert.deepEqual(
      (await places.allTextContents()).map((text) => text.trim()),
      ['Home', 'Cards', 'Payments'],
    );
    await visit(`test/cards/${json.id}`);
    await page.getByText('What happened').waitFor();
    await page.getByText('Nothing is restricted').waitFor();
    assert.deepEqual(await page.getByRole('main').getByRole('button').allTextContents(), ['', '']);
    assert.deepEqual(
      sent.filter((request) => /\/(balance|overview|events|test\/clock)/.test(request)),
      [],
    );
    assert.deepEqual(complaints, []);
  });

  it('offers no card to be issued without the scope to show it', async () => {
    const scopes = ['balance:read', 'cards:write'];
    const { page, says } = await openTab(browser, partner, { scopes });
    await says('$10,000.00');
    assert.equal(await page.getByRole('link', { name: 'Issue a card' }).count(), 0);
  });

  it("knows the account's time without the scope to advance it", async () => {
    await partner.call('POST', '/test/clock/advance', { body: { seconds: 40 * 86_400 } });
    const { page, visit, says } = await openTab(browser, partner, { scopes: ['balance:read'] });
    await says('40 days ahead');
    await visit('test/balance/statements');
    const month = new Date(Date.now() + 40 * 86_400_000).toISOString().slice(0, 7);
    await until('the month is there', async () => (await page.getByLabel('Month').inputValue()) === month);
  });

  it('lets a year be typed over another one, wherever the browser is', async () => {
    // Its offset had seconds until 1937.
    const tab = await openTab(browser, partner, { timezoneId: 'Europe/Amsterdam' });
    const { page, choose, fill } = tab;
    await choose('Cards');
    await fill('From', '2026-11-20T03:04');
    for (const key of ['ArrowRight', 'ArrowRight', '2', '0', '2', '5']) await page.keyboard.press(key);
    await page.waitForURL(/created_gte=2025-11-20T02%3A04/);
    assert.equal(await page.getByLabel('From').inputValue(), '2025-11-20T03:04');
  });

  it('loads 10,000 cards on by cursor, and finds one of them', async () => {
    await setCurrentProduct(stack.operator, { code: 'BENCH', bin: '424242', scheme: 'visa' });
    await seedCards(stack.config.databaseUrl, partner.id, 1, 10_000);
    const { page, choose, press, fill, says, complaints } = await openTab(browser, partner);
    await choose('Cards');
    const rows = page.getByRole('table').locator('tbody tr');
    await until('a page is there', async () => (await rows.count()) === 50);
    for (const count of [100, 150, 200]) {
      await press('Load more');
      await until(`${count} rows are there`, async () => (await rows.count()) === count);
    }
    await says('200 shown');
    assert.equal(new Set(await rows.allTextContents()).size, 200);
    await fill('Reference', 'seed-77');
    await page.keyboard.press('Enter');
    await until('one row is there', async () => (await rows.count()) === 1);
    assert.match(page.url(), /external_ref=seed-77$/);
    await page.reload();
    await until('one row is there again', async () => (await rows.count()) === 1);
    assert.deepEqual(complaints, []);
  });

  it('shows everything but the chart while that can not be loaded, and draws it once it can', async () => {
    const { page } = await openTab(browser, partner);
    let asked = 0;
    await page.route('**/days-chart*', (route) => {
      asked += 1;
      return route.abort();
    });
    await page.reload();
    await page.getByText('As a table').first().waitFor();
    await until('the chart is asked for', () => asked > 0);
    assert.ok((await page.getByRole('heading', { level: 1 }).count()) > 0);
    assert.equal(await page.getByRole('alert').count(), 0);
    await page.unroute('**/days-chart*');
    await page.locator('figure canvas').first().waitFor();
  });

  it('keeps what it shows while the API is restarted, says so, and goes on by itself', async () => {
    const port = await freePort();
    const config = { ...stack.config, port, publicUrl: `http://127.0.0.1:${port}` };
    const start = () => startApi(config, pino({ level: 'silent' }));
    let api = await start();
    const here = partnerAt(partner, api.url);
    const { page, says } = await openTab(browser, here);
    await page.getByText('$10,000.00').first().waitFor();
    await api.stop();
    await says(/does not answer|connection/i);
    assert.ok((await page.getByText('$10,000.00').count()) > 0);
    api = await start();
    await partner.call('POST', '/test/credit', { body: { amount: 100 }, idempotencyKey: 'later' });
    await says('$10,001.00');
    await until('the error is gone', async () => (await page.getByRole('alert').count()) === 0);
    await api.stop();
  });
});
