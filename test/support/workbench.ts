import assert from 'node:assert/strict';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { Scope } from '../../accounts/scope-rules.ts';
import { buildWorkbench } from '../../dev/stack/build-workbench.ts';
import { parseBlock } from '../../domain/ip-address.ts';
import type { Mode } from '../../domain/mode.ts';
import { launchBrowser } from './browser.ts';
import { TEST_TRON } from './deposits/seed-deposits.ts';
import { startTestStack, type TestPartner, type TestStack } from './stack.ts';
import { until } from './until.ts';

const LOOPBACK = parseBlock('127.0.0.1') ?? assert.fail();

/** A browser, and a stack whose API serves this checkout's pages; without a browser the suite is skipped. */
export async function startWorkbench(
  suite: Mocha.Context,
  options: { worker?: boolean } = {},
): Promise<{ browser: Browser; stack: TestStack }> {
  const browser = await launchBrowser();
  if (browser === undefined) return suite.skip();
  await buildWorkbench(() => {});
  const overrides = { trustedProxies: [LOOPBACK], tron: TEST_TRON, webhookTimeoutMs: 60_000 };
  return { browser, stack: await startTestStack(overrides, options) };
}

export interface TabOptions {
  mode?: Mode;
  scopes?: string[];
  width?: number;
  colorScheme?: 'light' | 'dark';
  timezoneId?: string;
  /** Another tab of the same browser. */
  context?: BrowserContext;
}

let browsers = 0;

export async function openTab(browser: Browser, partner: TestPartner, options: TabOptions = {}) {
  const { mode = 'test', scopes = ALL_SCOPES, width = 1_440, colorScheme = 'light' } = options;
  const { timezoneId = 'UTC' } = options;
  const made = await partner.call('POST', '/workbench-sessions', { mode, body: { scopes } });
  assert.equal(made.status, 201, made.text);
  const { id: sessionId, url } = made.json;
  const address = `10.9.${Math.floor(++browsers / 250)}.${browsers % 250}`;
  const context =
    options.context ??
    (await browser.newContext({
      viewport: { width, height: 900 },
      colorScheme,
      timezoneId,
      permissions: ['clipboard-write'],
      extraHTTPHeaders: { 'x-forwarded-for': address },
    }));
  context.setDefaultTimeout(20_000);
  const page = await context.newPage();
  const tab = tabOf(page, context, sessionId, new URL(url).origin);
  await page.addInitScript({
    content: `addEventListener('securitypolicyviolation', (event) => console.error(event.violatedDirective))`,
  });
  await page.goto(url);
  await page.getByRole('navigation', { name: 'Pages' }).or(page.getByRole('main')).first().waitFor();
  return tab;
}

/** Those of a session that may do everything. */
export const ALL_SCOPES = Scope.options.filter((scope) => scope !== 'workbench:write');

/** A browser's tab with the workbench in it. */
export type Tab = ReturnType<typeof tabOf>;

function tabOf(page: Page, context: BrowserContext, sessionId: string, origin: string) {
  /** What a page of ours never causes: errors, violations of its policy, requests elsewhere. */
  const complaints: string[] = [];
  const sent: string[] = [];
  // A response of 4xx is said on the page, and by Chromium in its console, too.
  page.on('console', (message) => {
    if (!/Failed to load resource/.test(message.text())) complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('request', (request) => {
    if (new URL(request.url()).origin !== origin) complaints.push(`asked ${request.url()}`);
    sent.push(`${request.method()} ${request.url().slice(origin.length)} ${request.postData() ?? ''}`);
  });
  return {
    page,
    context,
    sessionId,
    complaints,
    sent,
    visit: async (path: string) => {
      await page.goto(`${origin}/workbench/${path}`);
    },
    choose: (name: string) =>
      page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name, exact: true }).click(),
    says: (text: string | RegExp) => page.getByText(text).first().waitFor(),
    press: (name: string) => page.getByRole('button', { name, exact: true }).click(),
    fill: (label: string, value: string) => page.getByLabel(label, { exact: true }).fill(value),
    /** Presses the button of the open dialog, and waits until it is gone. */
    submit: async (name: string) => {
      const dialog = page.getByRole('dialog');
      const earlier = await dialog.getByRole('alert').elementHandles();
      await dialog.getByRole('button', { name, exact: true }).click();
      // What an earlier try has said goes when the next one begins.
      await Promise.all(earlier.map((problem) => problem.waitForElementState('hidden')));
      await until('the dialog is gone', async () => {
        const [problem] = await dialog.getByRole('alert').allTextContents();
        if (problem !== undefined) assert.fail(problem);
        return (await dialog.count()) === 0;
      });
    },
  };
}
