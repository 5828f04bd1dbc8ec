import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Browser, Page } from 'playwright-core';
import { issueCard, reveal, revealingPartner } from '../support/api/reveals.ts';
import { launchBrowser } from '../support/browser.ts';
import { asOwner } from '../support/postgres.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';

describe('the page of a reveal link, in a browser', () => {
  let browser: Browser;
  let stack: TestStack;
  let partner: TestPartner;
  let cardId: string;
  const complaints: string[] = [];
  before(async function () {
    const launched = await launchBrowser();
    if (launched === undefined) return this.skip();
    browser = launched;
    stack = await sharedStack('api');
  });
  beforeEach(async () => {
    complaints.length = 0;
    partner = await revealingPartner(stack);
    cardId = await issueCard(partner, 'test', {
      cardholder_first_name: 'Ada',
      cardholder_last_name: 'Lovelace',
    });
  });
  afterEach(async () => {
    for (const context of browser.contexts()) await context.close();
  });
  after(() => browser?.close());

  const make = async (body: object = {}): Promise<string> =>
    (await partner.call('POST', `/cards/${cardId}/reveal-links`, { body })).json.url;
  const openPage = async (url: string): Promise<Page> => {
    const page = await browser.newPage({ viewport: { width: 390, height: 700 } });
    page.on('console', (message) => complaints.push(message.text()));
    page.on('pageerror', (error) => complaints.push(error.message));
    await page.addInitScript({
      content: `addEventListener('securitypolicyviolation', (event) => console.error(event.violatedDirective))`,
    });
    await page.goto(url);
    return page;
  };
  const says = (page: Page, text: RegExp) =>
    until(`the page says ${text}`, async () =>
      text.test((await page.getByRole('status').textContent()) ?? ''),
    );

  it('shows the card when it is asked to, by keyboard alone, and keeps no token', async () => {
    const url = await make();
    const page = await openPage(url);
    await until('the token is off the address bar', () => !page.url().includes('#'));
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await says(page, /Shown for a minute/);
    const { pan, cvv } = (await reveal(partner, cardId)).json;
    assert.equal((await page.locator('#number').textContent())?.replaceAll(' ', ''), pan);
    assert.equal(await page.locator('#cvv').textContent(), cvv);
    assert.equal(await page.locator('#name').textContent(), 'Ada Lovelace');
    const overflow = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
    assert.ok(Number(overflow) <= 0);
    assert.deepEqual(complaints, []);
    const again = await openPage(url);
    await again.getByRole('button', { name: 'Show card details' }).click();
    await says(again, /opened before/);
  });

  it('hides it after a minute, and says so', async () => {
    const page = await browser.newPage();
    await page.clock.install();
    await page.goto(await make());
    await page.getByRole('button', { name: 'Show card details' }).click();
    await says(page, /Shown/);
    await page.clock.runFor(61_000);
    await says(page, /Hidden/);
    assert.equal(await page.locator('#number').textContent(), '');
  });

  it('lets the link be opened again after the limit of reveals', async () => {
    for (let i = 0; i < 3; i++) await reveal(partner, cardId);
    const page = await openPage(await make());
    await page.getByRole('button', { name: 'Show card details' }).click();
    await says(page, /3 times in any minute/);
    await asOwner(
      stack,
      `UPDATE card_reveal SET created_at = created_at - interval '1 hour' WHERE partner_id = $1`,
      [partner.id],
    );
    await page.getByRole('button', { name: 'Show card details' }).click();
    await says(page, /Shown/);
  });

  it('is not shown in a frame of an origin that it does not name', async () => {
    const url = await make({ frame_origins: ['https://app.example.com'] });
    const server = createServer((_, res) => {
      res.setHeader('content-type', 'text/html');
      res.end(`<!doctype html><iframe src="${url}"></iframe>`);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    await openPage(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    await until('the browser refuses the frame', () =>
      complaints.some((text) => text.includes('frame-ancestors')),
    );
    server.close();
  });
});
