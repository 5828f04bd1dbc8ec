import { mkdir, mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { freePort } from '../dev/free-port.ts';
import type { StackFile } from '../dev/stack/stack-file.ts';
import { issueCardWorkflowId } from '../workflows/messages.ts';
import { launchBrowser } from './support/browser.ts';
import { runStack } from './support/dev/stack-process.ts';
import { operateIn } from './support/operator/operate.ts';

/**
 * `npm run pictures`: takes the README's pictures anew, of a local stack that it starts and removes. Look at them before
 * you commit them.
 */
const PICTURES = fileURLToPath(new URL('../docs/pictures', import.meta.url));
const SIZE = { width: 1280, height: 800 };
/** GitHub shows them on every visit. */
const MOST_BYTES = 250_000;

await using cleanUp = new AsyncDisposableStack();
const browser = await launchBrowser();
if (browser === undefined) process.exit(1);
cleanUp.defer(() => browser.close());
const folder = await mkdtemp(join(tmpdir(), 'card-issuing-pictures-'));
cleanUp.defer(() => rm(folder, { recursive: true, force: true }));
const DATA_DIR = join(folder, 'data');
const stack = runStack('start', { DATA_DIR, PORT: String(await freePort()) });
cleanUp.defer(async () => {
  stack.kill('SIGTERM');
  await stack.ended;
});
await stack.printed(/^ready/);
const file: StackFile = JSON.parse(await readFile(join(DATA_DIR, 'stack.json'), 'utf8'));
if (file.temporalUiUrl === null) throw new Error('this Temporal server has no UI: unset TEMPORAL_ADDRESS');

const operate = operateIn({ DATA_DIR });
const grant = ['--mode', 'live', '--amount', '1000000', '--reason', 'pictures'];
await operate('partner', 'adjust', file.demo.partnerId, ...grant);
const issue = async (amount: number) => {
  const response = await fetch(`${file.apiUrl}/cards`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${file.demo.liveKey}`,
      'content-type': 'application/json',
      'idempotency-key': String(amount),
    },
    body: JSON.stringify({ amount, external_ref: `order-${amount}` }),
  });
  return (await response.json()) as { id: string };
};
for (const amount of [5_000, 7_500, 5_044, 5_042, 12_000, 5_043, 5_045]) await issue(amount);
// Never decided by the network: its workflow asks again and again.
const pending = await issue(5_047);

const page = await browser.newPage({ viewport: SIZE });
await mkdir(PICTURES, { recursive: true });

const reference = `${file.apiUrl.replace('/v1', '')}/docs`;
await page.goto(reference);
await page.locator('aside').getByText('Introduction').waitFor();
await take(page, 'reference');
await page.goto(`${reference}#tag/cards/POST/cards`);
await page.getByText('$CARD_ISSUING_BASE_URL').first().waitFor();
await page.waitForTimeout(2_000);
await take(page, 'operation');

const workflows = `${file.temporalUiUrl}/namespaces/${file.temporalNamespace}/workflows`;
// A few more questions to the network.
await page.waitForTimeout(20_000);
await page.goto(`${workflows}/${encodeURIComponent(issueCardWorkflowId(pending.id))}`);
await page.getByText('until the network is asked again').first().waitFor();
await take(page, 'workflow');
await page.getByText('User Metadata', { exact: true }).click();
await page.locator('iframe').last().contentFrame().getByText('networkResult').waitFor();
await take(page, 'workflow-details');
await page.goto(
  `${workflows}?query=${encodeURIComponent(`PartnerId = "${file.demo.partnerId}" AND \`Mode\` = "live"`)}`,
);
await page.getByText(pending.id).first().waitFor();
await take(page, 'workflow-list');

async function take(page: Page, name: string): Promise<void> {
  // What fades in has faded in.
  await page.waitForTimeout(1_500);
  const path = join(PICTURES, `${name}.png`);
  await page.screenshot({ path, animations: 'disabled' });
  const { size } = await stat(path);
  console.log(`${path}: ${Math.ceil(size / 1_000)} kB${size > MOST_BYTES ? ', which is too much' : ''}`);
}
