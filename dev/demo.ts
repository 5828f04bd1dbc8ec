import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { promisify, styleText } from 'node:util';
import { CardIssuing, CardIssuingError } from '../client/index.ts';
import { describeFailure } from './process/describe-failure.ts';
import { signalProcess } from './process/identity.ts';
import { ChildRegistry } from './process/orphans.ts';
import { type DataFolder, dataFolder } from './stack/data-folder.ts';
import { readLocalStack } from './stack/stack-file.ts';

/**
 * `npm run demo`: uses a card of the running local stack's demo partner, and kills the worker while a live card is being
 * issued. Each request and what matters of its response is printed, and never a key.
 */
try {
  await demonstrate(dataFolder());
} catch (error) {
  console.error(describe(error));
  process.exitCode = 1;
}

async function demonstrate(folder: DataFolder): Promise<void> {
  const { apiUrl: baseUrl, demo } = readLocalStack(folder);
  const test = new CardIssuing({ apiKey: demo.testKey, baseUrl });
  const live = new CardIssuing({ apiKey: demo.liveKey, baseUrl });
  // A stack that does not run is found before anything is announced.
  await test.account.ping({ maxRetries: 0 });

  say('Pretend money funds the test balance.');
  show('POST /test/credit', { amount: 100_000 });
  const { available } = await test.testHelpers.creditBalance({ amount: 100_000 });
  show('  balance', { available });

  say('A card is issued in one transaction: the money, its fees and the card, or nothing.');
  const body = { amount: 5_000, external_ref: `demo-${randomUUID().slice(0, 8)}`, card_name: 'Demo' };
  show('POST /cards', body);
  const card = await test.cards.create(body);
  show('  card', { id: card.id, status: card.status, balance: card.balance, last4: card.last4 });

  say('A merchant asks for $12.00, which the card holds. Then the merchant takes them.');
  show(`POST /test/cards/${card.id}/authorizations`, { amount: 1_200, merchant_name: 'Café' });
  const { id } = await test.testHelpers.createAuthorization(card.id, {
    amount: 1_200,
    merchant_name: 'Café',
  });
  await showCard();
  show(`POST /test/authorizations/${id}/capture`, {});
  const { type, amount, charged_to } = await test.testHelpers.captureAuthorization(id);
  show('  transaction', { type, amount, charged_to });
  await showCard();

  say('In live mode, a card network decides. At this amount, the simulated one takes two seconds.');
  const grant = [
    'partner',
    'adjust',
    demo.partnerId,
    '--mode',
    'live',
    '--amount',
    '10000',
    '--reason',
    'demo',
  ];
  show(`npm run operator -- ${grant.join(' ')}`, undefined);
  await operate(...grant);
  const pendingBody = { amount: 5_041, external_ref: `demo-${randomUUID().slice(0, 8)}` };
  show('POST /cards', pendingBody);
  const pending = await live.cards.create(pendingBody);
  show('  card', { id: pending.id, status: pending.status });
  if (pending.status !== 'funding_pending') {
    throw new Error(
      'Only the simulated network leaves this card pending. Start a stack without --network in another DATA_DIR, and run npm run demo there.',
    );
  }

  const worker = new ChildRegistry(folder.children).running().find(({ name }) => name === 'worker');
  if (worker === undefined) throw new Error('The worker is being started again. Run npm run demo again.');
  say('The worker dies in the middle of it. npm start starts another one.');
  show(`kill -9 ${worker.pid}`, undefined);
  signalProcess(worker.pid, 'SIGKILL');

  say('Nobody does anything about it. The workflow goes on where it was.');
  show(`GET /cards/${pending.id}`, undefined);
  const settled = await live.cards.waitUntilSettled(pending.id);
  show('  card', { status: settled.status, balance: settled.balance, last4: settled.last4 });

  say('Every cent is where the ledger says, and nothing happened twice.');
  show('npm run operator -- ledger check', undefined);
  console.log(styleText('dim', (await operate('ledger', 'check')).trimEnd().replaceAll(/^/gm, '    ')));
  say(`The workflow issue-card/${pending.id} in the Temporal UI says how it went.`);

  async function showCard(): Promise<void> {
    const { balance, available_balance } = await test.cards.get(card.id);
    show('  card', { balance, available_balance });
  }
}

function describe(error: unknown): string {
  if (!(error instanceof CardIssuingError)) return describeFailure(error);
  if (error.code === 'connection_failed') return 'The local stack does not run. Start it with npm start.';
  return `${error.code}: ${error.message}`;
}

function say(sentence: string): void {
  console.log(`\n${styleText('bold', sentence)}`);
}

/** A request, or, indented, what came back. */
function show(what: string, value: object | undefined): void {
  const text = value === undefined ? '' : ` ${JSON.stringify(value)}`;
  console.log(what.startsWith(' ') ? styleText('dim', `  ${what}${text}`) : `  ${what}${text}`);
}

/** Runs the operator's command line, which finds the local stack by itself. */
async function operate(...args: string[]): Promise<string> {
  const main = fileURLToPath(new URL('../operator/main.ts', import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [main, ...args]);
  return stdout;
}
