import type { Page } from 'playwright-core';
import { Pool } from 'undici';
import { buildWorkbench } from '../dev/stack/build-workbench.ts';
import { applyPosting } from '../ledger/apply-posting.ts';
import type { Posting } from '../ledger/posting.ts';
import { SERVICE_ROLE } from '../platform/db/login.ts';
import { openOrm } from '../platform/db/orm.ts';
import type { Transactor } from '../platform/db/sql.ts';
import { launchBrowser } from '../test/support/browser.ts';
import { ask } from './support/accounts.ts';
import { describe, measure, medianNumber } from './support/measure.ts';
import { scaled } from './support/scale.ts';
import { seedCards, seededCardId } from './support/seed.ts';
import { type BenchService, startService } from './support/service.ts';

const CARDS = scaled(10_000);
const TRANSFERS = scaled(1_000_000);
/** As many transfers as one operation of the ledger can have. */
const AT_ONCE = 100;
const READS = scaled(500);
const VISITS = scaled(7);

/**
 * Measures what somebody who opens the workbench waits for: GET /overview with few and with many transfers, and in
 * Chromium the first paint of Home and the first page of many cards.
 */
export async function run(): Promise<void> {
  await buildWorkbench(console.log);
  const service = await startService({ worker: false });
  const pool = new Pool(service.origin, { connections: 1 });
  try {
    await seedCards(service.databaseUrl, service.partnerId, 1, CARDS);
    const few = await readOverview('GET /overview, no transfers');
    await seedTransfers(service);
    const many = await readOverview(`GET /overview, ${TRANSFERS} transfers (goal p50 20 ms)`);
    console.log(`  ratio: ${(few.p50Ms / many.p50Ms).toFixed(2)} of the time with none`);
    await visit(service);
  } finally {
    await pool.close();
    await service.stop();
  }

  async function readOverview(name: string) {
    const from = { pool, key: service.testKey };
    const measured = await measure(READS, 1, async () => void (await ask(from, 'GET', '/overview')));
    console.log(describe(`  ${name}`, measured));
    return measured;
  }
}

/** Puts a cent on a card and spends it, over and over, by the ledger's own function. */
async function seedTransfers({ databaseUrl, partnerId }: BenchService): Promise<void> {
  const orm = await openOrm({ databaseUrl, poolSize: 2, role: SERVICE_ROLE, onOwnerLogin: () => {} });
  const tx = orm.em.fork() as Transactor;
  const post = (operationId: string, transfers: Posting['transfers']) =>
    applyPosting(tx, { operationId, partnerId, mode: 'test', transfers });
  const single = { phase: 'single', amountCents: 1 } as const;
  const faucet = { code: 'fund_faucet', debit: 'faucet', credit: 'prepaid' } as const;
  await post('bench-funding', [{ step: '1', ...faucet, phase: 'single', amountCents: TRANSFERS }]);
  const card = { cardId: seededCardId(1) };
  for (let done = 0; done < TRANSFERS; done += AT_ONCE) {
    const transfers = Array.from({ length: AT_ONCE / 2 }, (_, pair): Posting['transfers'] => [
      { step: `load-${pair}`, code: 'issue_load', debit: 'prepaid', credit: card, ...single },
      { step: `purchase-${pair}`, code: 'purchase', debit: card, credit: 'network', ...single },
    ]);
    await post(`bench-transfers/${done}`, transfers.flat());
  }
  await orm.close();
}

/** Opens pages in Chromium, with everything in its cache but for the first time. */
async function visit({ origin, testKey }: BenchService): Promise<void> {
  const browser = await launchBrowser();
  if (browser === undefined) return;
  const response = await fetch(`${origin}/v1/workbench-sessions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${testKey}` },
  });
  const { url } = (await response.json()) as { url: string };
  const page = await browser.newPage({ viewport: { width: 1_440, height: 900 } });
  try {
    await page.goto(url);
    await page.getByRole('heading', { name: 'Home' }).waitFor();
    console.log(`  first paint of Home, nothing cached: ${(await firstPaintMs(page)).toFixed(0)} ms`);
    const paintsMs: number[] = [];
    const listsMs: number[] = [];
    for (let visits = 0; visits < VISITS; visits++) {
      await page.goto(`${origin}/workbench/test`);
      await page.getByRole('heading', { name: 'Home' }).waitFor();
      paintsMs.push(await firstPaintMs(page));
      listsMs.push(await page.evaluate<number>(TIME_TO_CARDS));
    }
    console.log(`  first paint of Home, median: ${medianNumber(paintsMs).toFixed(0)} ms (goal 1000 ms)`);
    console.log(
      `  the first page of ${CARDS} cards, median: ${medianNumber(listsMs).toFixed(0)} ms (goal 300 ms)`,
    );
  } finally {
    await browser.close();
  }
}

const firstPaintMs = (page: Page): Promise<number> =>
  page.evaluate<number>(`new Promise((resolve) => {
    new PerformanceObserver((list) => resolve(list.getEntriesByName('first-contentful-paint')[0].startTime))
      .observe({ type: 'paint', buffered: true });
  })`);

/** From the press of "Cards" until the list's rows are painted. */
const TIME_TO_CARDS = `new Promise((resolve) => {
  const startedAt = performance.now();
  document.querySelector('nav a[href$="/cards"]').click();
  const look = () => {
    if (document.querySelectorAll('tbody tr').length === 0) return requestAnimationFrame(look);
    requestAnimationFrame(() => resolve(performance.now() - startedAt));
  };
  look();
})`;
