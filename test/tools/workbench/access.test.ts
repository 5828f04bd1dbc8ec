import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { Browser, Page } from 'playwright-core';
import { makeOneOfEach, unrestrictedPartner } from '../../support/api/accounts.ts';
import { createCard } from '../../support/cards.ts';
import type { TestPartner, TestStack } from '../../support/stack.ts';
import { until } from '../../support/until.ts';
import { openTab, startWorkbench, type Tab } from '../../support/workbench.ts';

const HOSTILE = '<img src=x onerror=console.error(1)>';

describe('the workbench, for everybody', () => {
  let browser: Browser;
  let stack: TestStack;
  let partner: TestPartner;
  let ids: Record<string, string>;
  let axe: string;
  before(async function () {
    ({ browser, stack } = await startWorkbench(this, { worker: false }));
    axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
    partner = await unrestrictedPartner(stack);
    ids = await makeOneOfEach(partner);
    await createCard(partner, {
      ...{ amount: 10_000, card_name: HOSTILE, external_ref: HOSTILE, metadata: { [HOSTILE]: HOSTILE } },
      ...{ cardholder_first_name: HOSTILE, cardholder_last_name: HOSTILE },
      spending_controls: {
        blocked_categories: ['7995'],
        spending_limits: [{ amount: 5_000, interval: 'daily' }],
      },
    });
    const cards = await partner.call('GET', '/cards');
    ids.hostileId = cards.json.data[0].id;
    const merchant = { merchant_name: HOSTILE, merchant_city: HOSTILE, amount: 100 };
    await partner.call('POST', `/test/cards/${ids.hostileId}/authorizations`, { body: merchant });
    const authorizations = await partner.call('GET', `/cards/${ids.hostileId}/authorizations`);
    ids.hostileAuthorizationId = authorizations.json.data[0].id;
    await partner.call('POST', '/webhook-endpoints', {
      body: { url: 'https://hooks.example.com/b', description: HOSTILE },
    });
  });
  afterEach(async () => {
    for (const context of browser.contexts()) await context.close();
  });
  after(async () => {
    await browser?.close();
    await stack?.stop();
  });

  const pages = (): [path: string, heading: string | RegExp][] => [
    ['', 'Home'],
    ['/cards', 'Cards'],
    ['/cards#issue', 'Cards'],
    [`/cards/${ids.hostileId}`, /^Card/],
    ['/payments', 'Payments'],
    ['/payments/transactions', 'Payments'],
    [`/payments/${ids.hostileAuthorizationId}`, HOSTILE],
    ['/balance', 'Balance'],
    ['/balance/statements', 'Balance'],
    ['/balance/reports', 'Balance'],
    ['/deposits', 'Deposits'],
    [`/deposits/${ids.depositId}`, /^Deposit of/],
    ['/events', 'Events'],
    [`/events/${ids.eventId}`, /\./],
    ['/endpoints', 'Endpoints'],
    [`/endpoints/${ids.endpointId}`, /hooks/],
    ['/keys', 'Keys'],
    ['/requests', 'Requests'],
    [`/requests/${ids.requestId}`, /POST/],
    ['/requests/operations', 'Requests'],
    [`/requests/operations/${ids.operationId}`, 'Operation'],
    ['/clock', 'Test clock'],
  ];
  const dialogs = ['Top up', 'Withdraw', 'Reveal', 'Simulate', 'Edit', 'Freeze', 'Block'];

  const isLoaded = (page: Page) =>
    until('everything is loaded', async () => (await page.getByText('Loading…').count()) === 0);
  async function violations(page: Page): Promise<string[]> {
    return page.evaluate(`(async () => {
      ${axe};
      const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];
      const { violations } = await axe.run(document, { runOnly: { type: 'tag', values: tags } });
      return violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ html }) => html.slice(0, 160)).join(' | '));
    })()`);
  }
  const assertAccessible = async ({ page }: Tab, what: string) => {
    assert.deepEqual(await violations(page), [], what);
    const overflow = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
    assert.ok(Number(overflow) <= 0, `${what} scrolls sideways by ${overflow} px`);
  };

  for (const [width, colorScheme] of [
    [1_440, 'light'],
    [1_440, 'dark'],
    [390, 'light'],
    [390, 'dark'],
  ] as const) {
    it(`is accessible on every page at ${width} px in ${colorScheme}, and asks and runs nothing of others`, async () => {
      const tab = await openTab(browser, partner, { width, colorScheme });
      for (const [path, heading] of pages()) {
        await tab.visit(`test${path}`);
        await tab.page.getByRole('heading', { name: heading, level: 1 }).waitFor();
        await isLoaded(tab.page);
        await assertAccessible(tab, path);
      }
      await tab.visit(`test/cards/${ids.hostileId}`);
      for (const dialog of dialogs) {
        await tab.page.getByRole('main').getByRole('button', { name: dialog, exact: true }).first().click();
        await tab.page.getByRole('dialog').waitFor();
        await assertAccessible(tab, dialog);
        await tab.page.keyboard.press('Escape');
        await tab.page.getByRole('dialog').waitFor({ state: 'detached' });
      }
      assert.deepEqual(tab.complaints, []);
      assert.equal(await tab.page.locator('img[src="x"]').count(), 0);
    });
  }

  it('issues a card by keyboard alone, with what it costs before, and says its shortcuts', async () => {
    const tab = await openTab(browser, partner);
    const { page } = tab;
    const press = (keys: string) => page.keyboard.press(keys);
    await press('?');
    await tab.says('The page’s first action');
    await press('Escape');
    await press('g');
    await press('c');
    await page.getByRole('heading', { name: 'Cards', level: 1 }).waitFor();
    await press('n');
    const dialog = page.getByRole('dialog', { name: 'Issue a card' });
    await dialog.waitFor();
    await dialog.locator('input[name=amount]:focus').waitFor();
    await page.keyboard.type('25');
    const quote = { type: 'card_issue', amount: 2_500 };
    const { total_debited } = (await partner.call('POST', '/quotes', { body: quote })).json;
    await tab.says(`$${(total_debited / 100).toFixed(2)}`);
    await press('Tab');
    await page.keyboard.type('by-keyboard');
    await tab.fill('First name', 'Ada');
    await tab.fill('Last name', 'Lovelace');
    await press('Enter');
    await page.getByRole('heading', { name: /^Card ••••/ }).waitFor();
    await tab.says('Ada Lovelace');
    const { json } = await partner.call('GET', '/cards?external_ref=by-keyboard');
    assert.deepEqual([json.data[0].status, json.data[0].balance], ['active', 2_500]);
    await press('g');
    await press('h');
    await page.getByRole('heading', { name: 'Home', level: 1 }).waitFor();
    assert.deepEqual(tab.complaints, []);
  });

  it('gives the focus back to what opened a dialog', async () => {
    const tab = await openTab(browser, partner);
    await tab.visit(`test/cards/${ids.cardId}`);
    await tab.press('Top up');
    await tab.page.keyboard.press('Escape');
    await tab.page.locator('button:focus', { hasText: 'Top up' }).waitFor();
  });

  it('has its pages behind a menu on a narrow screen', async () => {
    const tab = await openTab(browser, partner, { width: 390 });
    const link = tab.page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Events' });
    assert.equal(await link.isVisible(), false);
    await tab.press('Menu');
    await link.click();
    await tab.page.getByRole('heading', { name: 'Events', level: 1 }).waitFor();
    assert.equal(await link.isVisible(), false);
  });
});
