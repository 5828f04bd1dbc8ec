import assert from 'node:assert/strict';
import type { Browser, Locator, Page } from 'playwright-core';
import { launchBrowser } from '../../support/browser.ts';
import { sharedStack } from '../../support/shared-stack.ts';
import type { TestPartner } from '../../support/stack.ts';
import { until } from '../../support/until.ts';

describe('GET /docs, in a browser', () => {
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
    await page.setViewportSize({ width: 1400, height: 900 });
    await page.goto(`${origin}/docs`);
  });
  after(() => browser?.close());

  const openOperation = async (anchor: string): Promise<Locator> => {
    await page.goto(`${origin}/docs#${anchor}`);
    const section = page.locator(`[id="api-1/${anchor}"]`);
    await section.waitFor();
    return section;
  };

  it('shows every operation and every event in its group', async () => {
    const sidebar = page.locator('aside');
    await sidebar.getByText('Introduction').waitFor();
    const closed = sidebar.getByRole('button', { name: /^Open Group/ });
    while ((await closed.count()) > 0) await closed.first().click();
    const links = await sidebar.locator('a').evaluateAll((all) => all.map((one) => one.getAttribute('href')));
    const document = (await (await fetch(`${origin}/openapi.json`)).json()) as {
      paths: Record<string, object>;
      webhooks: object;
    };
    const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `/${method.toUpperCase()}${path}`),
    );
    const shown = links.map((link) => /^#tag\/[^/]+(\/[A-Z]+\/.+)$/.exec(link ?? '')?.[1]);
    assert.deepEqual(shown.filter((one) => one !== undefined).sort(), operations.sort());
    const events = links.filter((link) => link?.startsWith('#tag/webhooks/webhook/'));
    assert.equal(events.length, Object.keys(document.webhooks).length);
  });

  it('has samples in curl, TypeScript and Python beside an operation', async () => {
    const section = await openOperation('tag/cards/POST/cards');
    await section.getByText('$CARD_ISSUING_BASE_URL').first().waitFor();
    await section.getByRole('button', { name: 'curl' }).click();
    const options = page.getByRole('option');
    await options.first().waitFor();
    assert.deepEqual(await options.allInnerTexts(), ['curl', 'TypeScript', 'Python']);
    await options.nth(1).click();
    await section.getByText('client.cards.create').first().waitFor();
  });

  it('sends a request with the reader’s own key, and shows the response', async () => {
    const section = await openOperation('tag/test-helpers/POST/test/credit');
    await section.getByRole('button', { name: /Test Request/ }).click();
    const dialog = page.getByRole('dialog', { name: 'API Client' });
    await dialog.getByPlaceholder('Token').fill(partner.keys.test);
    const key = dialog.locator('tr', { hasText: 'Idempotency-Key' }).locator('[contenteditable]').last();
    const send = () => dialog.getByRole('button', { name: /Send/ }).first().click();
    const credited = (cents: number) =>
      until(`${cents} cents are credited`, async () => {
        const { json } = await partner.call('GET', '/balance');
        return json.available === cents;
      });
    await key.fill('from-the-page');
    await send();
    await dialog.getByText('201').first().waitFor();
    await credited(1_000_000);
    // Without a key of the reader's, each request has a fresh one.
    await key.fill('');
    await send();
    await credited(2_000_000);
    await send();
    await credited(3_000_000);
  });

  it('sends no request elsewhere, and obeys its Content-Security-Policy', async () => {
    assert.deepEqual(
      [...requested].filter((one) => one !== 'null'),
      [origin],
    );
    // Scalar's validation asks whether it may compile code, which the policy refuses.
    assert.deepEqual(complaints, ['script-src blocked eval']);
    // The policy is in force: what it forbids does not happen, and is noticed above.
    const outcome = await page.evaluate(`fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'blocked')`);
    assert.equal(outcome, 'blocked');
    await until('the page noticed it', () => complaints.includes('connect-src blocked http://127.0.0.1:9/'));
  });
});
