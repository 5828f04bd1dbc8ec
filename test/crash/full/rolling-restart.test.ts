import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../../dev/free-port.ts';
import type { Child } from '../../../dev/process/child.ts';
import type { Config } from '../../../platform/config/service.ts';
import { createCard, readCardRow } from '../../support/cards.ts';
import {
  bundleFile,
  kill,
  scratchFolder,
  startApiProcess,
  startProcess,
} from '../../support/crash/processes.ts';
import { assertLedgerClean, fundedPartner, priceOf } from '../../support/money.ts';
import {
  type Answer,
  partnerAt,
  startTestStack,
  type TestPartner,
  type TestStack,
} from '../../support/stack.ts';
import { until } from '../../support/until.ts';
import { countByStatus, setUrl } from '../../support/webhooks/events.ts';
import { answer, startReceiver } from '../../support/webhooks/receiver.ts';

/** The relay's leases last for 30 s: an event that somebody took and left comes no sooner. */
const LATE_MS = 20_000;
const DRAIN_DELAY_MS = 3_000;
/** How often the load balancer asks each API process whether it is ready. */
const ASKED_EVERY_MS = 300;
const AT_ONCE = 4;
const AMOUNT_CENTS = 1_000;

describe('two API and two worker processes that are restarted one after the other under load', () => {
  let stack: TestStack;
  let partner: TestPartner;
  const folder = scratchFolder();
  let bundle: string;
  const children: Child[] = [];
  before(async () => {
    stack = await startTestStack(
      { logLevel: 'warn', cardCreationWaitMs: 8_000, webhookDelaysMs: [2_000, 5_000, 5_000] },
      { worker: false },
    );
    partner = await fundedPartner(stack, 100_000_000);
    bundle = await bundleFile(folder);
  });
  after(async () => {
    await Promise.all(children.map(kill));
    await stack.stop();
  });

  it('answer every request, and send no event late', async () => {
    const receiver = await startReceiver();
    // Every event's first attempt fails, so that half of the attempts are retries.
    const firstSeen = new Map<string, number>();
    receiver.behave((request, response, number) => {
      const isFirst = !firstSeen.has(request.id);
      if (isFirst) firstSeen.set(request.id, request.at);
      answer(isFirst && number % 2 === 0 ? 500 : 200)(request, response, number);
    });
    await setUrl(stack, partner, receiver.url);

    const apis = await Promise.all([startApi(), startApi()]);
    const workers = await Promise.all([startWorker(), startWorker()]);
    const balancer = startBalancer(apis.map(({ config }) => `http://${config.host}:${config.port}`));
    await until('both are ready', () => balancer.ready().length === 2);
    const load = startLoad(balancer);

    for (const [index, api] of apis.entries()) {
      await stopGently(api.child);
      apis[index] = await startApi(api.config);
      await until('it is ready again', () => balancer.ready().length === 2);
    }
    for (const worker of workers) {
      await stopGently(worker);
      await startWorker();
    }
    await sleep(1_000);
    const { failed, cards } = await load.stop();
    await balancer.stop();

    assert.deepEqual(failed, []);
    await until('all live cards are active', async () => {
      const rows = await Promise.all(cards.live.map((id) => readCardRow(stack, id)));
      return rows.every((row) => row?.status === 'active');
    });
    await until('all events are delivered', async () => {
      const counts = await countByStatus(stack, partner);
      return Object.keys(counts).every((status) => ['delivered', 'no_endpoint'].includes(status));
    });
    const late = receiver.received.filter(({ id, body, at }) => {
      const retryMs = at === firstSeen.get(id) ? 0 : (stack.config.webhookDelaysMs[0] ?? 0);
      return at - Date.parse(JSON.parse(body).created) > retryMs + LATE_MS;
    });
    assert.deepEqual(
      late.map(({ id }) => id),
      [],
    );
    for (const mode of ['test', 'live'] as const) {
      const spent = cards[mode].length * priceOf(AMOUNT_CENTS);
      assert.ok(cards[mode].length > 0);
      const { json } = await partner.call('GET', '/balance', { mode });
      assert.deepEqual([json.available, json.held], [100_000_000 - spent, 0]);
    }
    await assertLedgerClean(stack);
    await receiver.stop();
  });

  async function startApi(config?: Config): Promise<{ config: Config; child: Child }> {
    const own = config ?? { ...stack.config, port: await freePort(), drainDelayMs: DRAIN_DELAY_MS };
    const child = await startApiProcess(own, folder, { env: { WORKFLOW_BUNDLE: bundle } });
    children.push(child);
    return { config: own, child };
  }

  async function startWorker(): Promise<Child> {
    const port = await freePort();
    const child = await startProcess(stack.config, folder, 'worker/main.ts', {
      env: { WORKFLOW_BUNDLE: bundle, WORKER_PORT: String(port) },
    });
    children.push(child);
    await until('the worker is ready', () => isReady(`http://127.0.0.1:${port}`));
    return child;
  }

  async function stopGently(child: Child): Promise<void> {
    process.kill(child.pid, 'SIGTERM');
    assert.equal(await child.exited, 'exit code 0', child.lastLines().join('\n'));
  }

  function startLoad(balancer: Balancer) {
    const failed: string[] = [];
    const cards: Record<'test' | 'live', string[]> = { test: [], live: [] };
    let isStopped = false;
    const kinds: ((by: TestPartner) => Promise<Answer>)[] = [
      (by) => createCard(by, { amount: AMOUNT_CENTS }),
      (by) => createCard(by, { amount: AMOUNT_CENTS }, { mode: 'live' }),
      (by) => by.call('GET', '/balance'),
      (by) => by.call('GET', '/cards', { mode: 'live' }),
    ];
    const loops = Array.from({ length: AT_ONCE }, async (_, first) => {
      for (let count = first; !isStopped; count++) {
        const send = kinds[count % kinds.length] as (typeof kinds)[number];
        const { status, text, json } = await send(partnerAt(partner, `${balancer.next()}/v1`)).catch(
          (error: Error) => ({ status: 0, text: `${error.message}: ${error.cause}`, json: null }),
        );
        if (![200, 201, 202].includes(status)) failed.push(`${status} ${text}`);
        else if (status !== 200) cards[json.mode as 'test' | 'live'].push(json.id);
        await sleep(20);
      }
    });
    return {
      async stop() {
        isStopped = true;
        await Promise.all(loops);
        return { failed, cards };
      },
    };
  }
});

const isReady = (origin: string): Promise<boolean> =>
  fetch(`${origin}/readyz`).then(
    ({ ok }) => ok,
    () => false,
  );

interface Balancer {
  ready(): string[];
  next(): string;
  stop(): Promise<void>;
}

/** Sends requests to the processes that were ready when it last asked, as load balancers do. */
function startBalancer(origins: readonly string[]): Balancer {
  const ready = new Set<string>();
  let turn = 0;
  let isStopped = false;
  const asking = origins.map(async (origin) => {
    while (!isStopped) {
      if (await isReady(origin)) ready.add(origin);
      else ready.delete(origin);
      await sleep(ASKED_EVERY_MS);
    }
  });
  return {
    ready: () => [...ready],
    next() {
      const all = [...ready];
      turn += 1;
      return all[turn % all.length] ?? 'http://no-process-is-ready.invalid';
    },
    async stop() {
      isStopped = true;
      await Promise.all(asking);
    },
  };
}
