import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { freePort } from '../../../dev/free-port.ts';
import type { Child } from '../../../dev/process/child.ts';
import type { Mode } from '../../../domain/mode.ts';
import type { Config } from '../../../platform/config/service.ts';
import { askAt } from '../../support/crash/operations.ts';
import {
  bundleFile,
  kill,
  scratchFolder,
  startApiProcess,
  startProcess,
} from '../../support/crash/processes.ts';
import { assertBalance, assertLedgerClean, fundedPartner, priceOf } from '../../support/money.ts';
import { asOwner } from '../../support/postgres.ts';
import { startTestStack, type TestPartner, type TestStack } from '../../support/stack.ts';
import { until } from '../../support/until.ts';
import { type Receiver, startReceiver } from '../../support/webhooks/receiver.ts';

const CARDS = 36;
const AMOUNT_CENTS = 1_000;

describe('three API and three worker processes', () => {
  let stack: TestStack;
  const folder = scratchFolder();
  let receiver: Receiver;
  const origins: string[] = [];
  const children: Child[] = [];

  before(async () => {
    // Its own API makes the partners; nothing is asked of it otherwise.
    stack = await startTestStack(
      // Patient: an event whose attempt is cut short on a busy machine is sent again.
      { cardCreationWaitMs: 60_000, webhookTimeoutMs: 20_000, logLevel: 'error' },
      { worker: false },
    );
    receiver = await startReceiver();
    const env = { WORKFLOW_BUNDLE: await bundleFile(folder) };
    const configs: Config[] = [];
    while (configs.length < 3) {
      const worker = { ...stack.config.worker, port: await freePort() };
      configs.push({ ...stack.config, port: await freePort(), worker });
    }
    children.push(
      ...(await Promise.all(
        configs.flatMap((config) => [
          startApiProcess(config, folder, { env }),
          startProcess(config, folder, 'worker/main.ts', { env }),
        ]),
      )),
    );
    origins.push(...configs.map(({ port }) => `http://127.0.0.1:${port}`));
    for (const origin of origins) {
      await until(`${origin} is ready`, async () => (await fetch(`${origin}/readyz`)).ok);
    }
  });
  after(async () => {
    await Promise.all(children.map(kill));
    await receiver?.stop();
    await stack?.stop();
  });

  const at = (index: number) => origins[index % origins.length] ?? '';

  const askAll = (partner: TestPartner, mode: Mode, path: string, body: object, key: string) =>
    Promise.all(origins.map((origin) => askAt(origin, { mode, partner, key, path, body })));

  it('give one answer for one key, whichever is asked, and move the money once', async () => {
    const partner = await fundedPartner(stack);
    await partner.call('PUT', '/webhook-endpoint', { body: { url: receiver.url } });
    const cards = await Promise.all(
      Array.from({ length: CARDS }, async (_, index) => {
        const mode: Mode = index % 2 === 0 ? 'test' : 'live';
        const key = randomUUID();
        const body = { amount: AMOUNT_CENTS, external_ref: randomUUID() };
        const asked = { mode, partner, key, path: '/cards', body };
        const first = await askAt(at(index), asked);
        assert.equal(first.status, 201, first.text);
        for (const answer of await askAll(partner, mode, '/cards', body, key)) {
          assert.deepEqual([answer.status, answer.text], [201, first.text]);
        }
        return { id: first.json.id as string, mode };
      }),
    );
    const spentCents = (CARDS / 2) * priceOf(AMOUNT_CENTS);
    for (const mode of ['test', 'live'] as const)
      await assertBalance(stack, partner, mode, { spentCents, heldCents: 0 });
    await assertLedgerClean(stack);

    const testCards = cards.filter(({ mode }) => mode === 'test');
    await until('every event is delivered', async () => {
      const [row] = await asOwner<{ count: number }>(
        stack,
        `SELECT count(*)::int AS count FROM delivery WHERE partner_id = $1 AND status = 'delivered'`,
        [partner.id],
      );
      return row?.count === testCards.length;
    });
    const told = receiver.received.map(({ id }) => id);
    assert.equal(new Set(told).size, testCards.length);
    assert.equal(told.length, testCards.length, 'no relay sends what another has sent');
  });

  it('start one operation when all of them get the same key at once', async () => {
    const partner = await fundedPartner(stack);
    const ids = new Set<string>();
    for (const mode of ['test', 'live'] as const) {
      for (let round = 0; round < 5; round++) {
        const key = randomUUID();
        const body = { amount: AMOUNT_CENTS, external_ref: randomUUID() };
        for (const answer of await askAll(partner, mode, '/cards', body, key)) {
          if (answer.status === 409) {
            assert.equal(answer.json.error.code, 'idempotency_in_flight');
          } else {
            assert.equal(answer.status, 201, answer.text);
            ids.add(answer.json.id);
          }
        }
      }
      await assertBalance(stack, partner, mode, {
        spentCents: 5 * priceOf(AMOUNT_CENTS),
        heldCents: 0,
      });
    }
    assert.equal(ids.size, 10);
  });
});
