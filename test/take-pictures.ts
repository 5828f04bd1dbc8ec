import { mkdir, mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { CardIssuing } from '../client/index.ts';
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
const CARDS = [
  ['Travel', 'Ada', 'Lovelace'],
  ['Cloud hosting', 'Grace', 'Hopper'],
  ['Ads', 'Alan', 'Turing'],
  ['Software', 'Edsger', 'Dijkstra'],
  ['Books', 'Barbara', 'Liskov'],
] as const;
const MERCHANTS = ['Café Central', 'Deutsche Bahn', 'Hetzner', 'Springer', 'Lufthansa', 'JetBrains'];
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

await mkdir(PICTURES, { recursive: true });
const test = new CardIssuing({ apiKey: file.demo.testKey, baseUrl: file.apiUrl });
await liveThroughAMonth(test);
for (const colorScheme of ['light', 'dark'] as const) {
  const { url = '' } = await test.workbenchSessions.create({});
  const context = await browser.newContext({ viewport: SIZE, colorScheme });
  const workbench = await context.newPage();
  await workbench.goto(url);
  await workbench.getByRole('link', { name: 'card.authorization.created' }).first().waitFor();
  await take(workbench, colorScheme === 'light' ? 'workbench' : 'workbench-dark');
  await context.close();
}

const page = await browser.newPage({ viewport: SIZE });

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

/** Thirty days of an account in test mode, by its clock. */
async function liveThroughAMonth(client: CardIssuing): Promise<void> {
  await client.testHelpers.creditBalance({ amount: 2_500_000 });
  const cards = [];
  for (const [card_name, first, last] of CARDS) {
    const card = await client.cards.create({
      ...{ amount: 180_000, external_ref: `order-${1_000 + cards.length}`, card_name },
      ...{ cardholder_first_name: first, cardholder_last_name: last },
      spending_controls: { spending_limits: [{ amount: 60_000, interval: 'weekly' }] },
    });
    cards.push(card.id);
  }
  for (let day = 0; day < 29; day++) {
    if (day % 9 === 8) await client.testHelpers.creditBalance({ amount: 400_000 });
    for (const [index, cardId] of cards.entries()) {
      const amount = 900 + ((day * 37 + index * 53) % 41) * 110;
      const merchant_name = MERCHANTS[(day + index) % MERCHANTS.length] ?? '';
      if ((day + index) % 3 === 0) continue;
      await client.testHelpers.simulateTransaction(cardId, { type: 'purchase', amount, merchant_name });
      if ((day + index) % 7 === 0)
        await client.testHelpers.simulateTransaction(cardId, { type: 'refund', amount: 500, merchant_name });
    }
    if (day % 5 === 2 && cards[0]) await client.topups.create(cards[0], { amount: 20_000 });
    await client.testHelpers.advanceClock({ seconds: 86_400 });
  }
  const [travel = '', , ads = '', software = ''] = cards;
  await client.cards.freeze(ads);
  await client.cards.block(software);
  await client.testHelpers.createDeposit({ amount: 50_000, payment: 'none' });
  const merchant = { merchant_name: 'Deutsche Bahn', merchant_category_code: '4112' };
  await client.testHelpers.createAuthorization(travel, { amount: 12_940, ...merchant });
}

async function take(page: Page, name: string): Promise<void> {
  // What fades in has faded in.
  await page.waitForTimeout(1_500);
  const path = join(PICTURES, `${name}.png`);
  await page.screenshot({ path, animations: 'disabled' });
  const { size } = await stat(path);
  console.log(`${path}: ${Math.ceil(size / 1_000)} kB${size > MOST_BYTES ? ', which is too much' : ''}`);
}
