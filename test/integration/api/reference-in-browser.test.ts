import assert from 'node:assert/strict';
import type { Browser, Locator, Page } from 'playwright-core';
import { launchBrowser } from '../../support/browser.ts';
import { sharedStack } from '../../support/shared-stack.ts';
import type { TestPartner } from '../../support/stack.ts';
import { until } from '../../support/until.ts';

describe('GET /docs, in a browser', function () {
  this.timeout(120_000);
  let browser: Browser;
  let page: Page;
  let origin: string;
  let partner: TestPartner;
  const requested = new Set<string>();
  const complaints: string[] = [];

  before(async function () {
    const launched = await launchBrowser();
    if (launched === undefined) return this.skip();
    browser = launched;
    const stack = await sharedStack();
    origin = `http://${stack.config.host}:${stack.config.port}`;
    partner = await stack.createPartner('Browsing Partner');
    page = await browser.newPage();
    page.setDefaultTimeout(60_000);
    page.on('request', (request) => requested.add(new URL(request.url()).origin));
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
    });
    page.on('pageerror', (error) => complaints.push(error.message));
    // Beside the console, which says it in words that change.
    await page.addInitScript({
      content: `addEventListener('securitypolicyviolation', (event) => {
        console.error(event.violatedDirective + ' blocked ' + event.blockedURI);
      });`,
    });
    await page.goto(`${origin}/docs`);
  });
  after(() => browser?.close());

  const operation = (method: string, path: string): Locator =>
    page.locator(`.opblock-${method}`, { has: page.locator(`[data-path="${path}"]`) });

  it('shows every operation in its group', async () => {
    await page.locator('.opblock').first().waitFor();
    const ids = await page.locator('.opblock').evaluateAll((blocks) => blocks.map(({ id }) => id));
    const webhooks = ids.filter((id) => id.startsWith('operations-webhooks-'));
    const document = (await (await fetch(`${origin}/openapi.json`)).json()) as {
      paths: object;
      webhooks: object;
    };
    const operations = Object.values(document.paths).flatMap((path) => Object.keys(path));
    assert.equal(ids.length - webhooks.length, operations.length);
    assert.equal(webhooks.length, Object.keys(document.webhooks).length);
    assert.match(await page.locator('.info .title').innerText(), /Virtual Card Issuing Partner API/);
  });

  it('sends a request with the reader’s own key, and shows the response', async () => {
    await page.locator('.btn.authorize').first().click();
    const dialog = page.locator('.modal-ux');
    await dialog.locator('input').fill(partner.keys.test);
    await dialog.locator('.btn.authorize').click();
    await dialog.locator('.btn-done').click();

    const credit = operation('post', '/test/credit');
    await credit.locator('.opblock-summary-control').click();
    await credit.locator('.try-out__btn').click();
    await credit.locator('[data-param-name="Idempotency-Key"] input').fill('from-the-page');
    await credit.locator('.body-param__text').fill('{"amount": 12345}');
    await credit.locator('.execute').click();
    const response = credit.locator('.live-responses-table .response').first();
    assert.match(await response.locator('.response-col_status').innerText(), /^201/);
    assert.match(await response.locator('.highlight-code').first().innerText(), /"total": 12345/);
    assert.equal((await partner.call('GET', '/balance')).json.available, 12_345);
  });

  it('sends no request elsewhere, and obeys its Content-Security-Policy', async () => {
    assert.deepEqual(
      [...requested].filter((one) => one !== 'null'),
      [origin],
    );
    assert.equal(complaints.join('\n'), '');
    // The policy is in force: what it forbids does not happen, and is noticed above.
    const outcome = await page.evaluate(`fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'blocked')`);
    assert.equal(outcome, 'blocked');
    await until('the page noticed it', () => complaints.includes('connect-src blocked http://127.0.0.1:9/'));
  });
});
