import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Browser } from 'playwright-core';
import { unrestrictedPartner } from './api/accounts.ts';
import { createCard } from './cards.ts';
import { assertLedgerClean } from './money.ts';
import type { TestPartner, TestStack } from './stack.ts';
import { openTab, startWorkbench, type Tab } from './workbench.ts';

/** A browser on the workbench for the suite that calls this, and for each case a new account in a tab, which may not complain. */
export function startJourneys() {
  let browser: Browser;
  let stack: TestStack;
  let partner: TestPartner;
  let tab: Tab;
  before(async function () {
    ({ browser, stack } = await startWorkbench(this));
  });
  beforeEach(async () => {
    partner = await unrestrictedPartner(stack);
    tab = await openTab(browser, partner);
  });
  afterEach(async () => {
    assert.deepEqual(tab.complaints, []);
    await tab.context.close();
  });
  after(async () => {
    await assertLedgerClean(stack);
    await browser?.close();
    await stack?.stop();
  });
  return {
    get browser() {
      return browser;
    },
    get stack() {
      return stack;
    },
    get partner() {
      return partner;
    },
    get tab() {
      return tab;
    },
    get: async (path: string) => (await partner.call('GET', path)).json,
    issue: async (body: object = {}): Promise<string> =>
      (await createCard(partner, { amount: 50_000, external_ref: randomUUID(), ...body })).json.id,
  };
}
