import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import type { Config } from '../../config/service.ts';
import { freePort } from '../../dev/free-port.ts';
import type { Child } from '../../dev/process/child.ts';
import { networkIdOf, networkTransaction, sendAsNetwork } from '../support/api/network-events.ts';
import { createCard } from '../support/cards.ts';
import { askAt } from '../support/crash/operations.ts';
import { kill, scratchFolder, startApiProcess } from '../support/crash/processes.ts';
import { assertLedgerClean, balanceOf, fundedPartner } from '../support/money.ts';
import { startTestStack, type TestPartner, type TestStack } from '../support/stack.ts';

const EVENTS_EACH = 12;
const live = { mode: 'live' } as const;

describe('an API process that settles transactions', function () {
  this.timeout(120_000);
  let stack: TestStack;
  let partner: TestPartner;
  let folder: string;
  before(async () => {
    folder = scratchFolder();
    stack = await startTestStack({ cardCreationWaitMs: 30_000, logLevel: 'error' });
  });
  beforeEach(async () => {
    partner = await fundedPartner(stack, 100_000);
  });
  after(async () => {
    await assertLedgerClean(stack);
    await stack.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Runs `work` against an API process that dies of it. */
  async function untilKilled(dieAt: string, work: (config: Config) => Promise<unknown>): Promise<void> {
    const config = { ...stack.config, port: await freePort() };
    const api: Child = await startApiProcess(config, folder, {
      execArgv: ['--import', './test/support/crash/die-at-commit.ts'],
      env: { DIE_AT_COMMIT: dieAt },
    });
    try {
      await work(config);
      assert.equal(await api.exited, 'signal SIGKILL', api.lastLines().join('\n'));
    } finally {
      await kill(api);
    }
  }

  const transactionsOf = async (cardId: string, mode: 'test' | 'live') =>
    (await partner.call('GET', `/cards/${cardId}/transactions?limit=100`, { mode })).json.data;
  const eventsOf = async (cardId: string) => {
    const rows = await stack.orm.em
      .fork()
      .getConnection()
      .execute<{ body: string }[]>(
        `SELECT body FROM event WHERE card_id = '${cardId}' AND type = 'card.transaction.created'`,
      );
    return rows.map(({ body }) => JSON.parse(body).data.transaction.id);
  };

  for (const dieAt of ['before 1', 'after 1', 'before 2', 'after 2', 'before 3', 'after 3']) {
    it(`settles each of the network's events once when it is killed -9 ${dieAt.replace(' ', ' commit ')}`, async () => {
      const cards: string[] = [];
      for (let i = 0; i < 3; i++) cards.push((await createCard(partner, { amount: 1_000 }, live)).json.id);
      const blocked = cards[2] ?? '';
      assert.equal((await partner.call('POST', `/cards/${blocked}/block`, live)).status, 200);
      const [, , before = 0] = await balanceOf(partner, 'live');
      const bodies: string[] = [];
      for (const cardId of cards) {
        const networkId = await networkIdOf(stack, cardId);
        for (let i = 0; i < EVENTS_EACH; i++) {
          bodies.push(JSON.stringify(networkTransaction(networkId, { amountCents: 110 })));
        }
      }
      const [first, ...rest] = bodies as [string, ...string[]];
      await untilKilled(dieAt, async (config) => {
        const send = (body: string) => sendAsNetwork({ ...stack, config }, '/network/transactions', body);
        // At least three commits: of one alone, and of what comes at once, twice.
        const outcomes: PromiseSettledResult<unknown>[] = [];
        for (const wave of [
          [first],
          rest.filter((_, i) => i % 2 === 0),
          rest.filter((_, i) => i % 2 === 1),
        ]) {
          outcomes.push(...(await Promise.allSettled(wave.map(send))));
        }
        assert.ok(outcomes.some(({ status }) => status === 'rejected'));
      });

      const again = await Promise.all(
        bodies.map((body) => sendAsNetwork(stack, '/network/transactions', body)),
      );
      const told: string[] = again.map(({ status, text, json }) => {
        assert.equal(status, 200, text);
        return json.transactionId;
      });
      assert.equal(new Set(told).size, bodies.length);
      for (const cardId of cards) {
        const made: { id: string; type: string }[] = await transactionsOf(cardId, 'live');
        assert.equal(made.length, EVENTS_EACH);
        assert.ok(made.every(({ id }) => told.includes(id)));
        assert.deepEqual((await eventsOf(cardId)).toSorted(), made.map(({ id }) => id).toSorted());
        // A card of 1,000 pays for nine of 110.
        const paid = made.filter(({ type }) => type === 'purchase').length;
        assert.equal(paid, cardId === blocked ? EVENTS_EACH : 9);
      }
      const [, , after = 0] = await balanceOf(partner, 'live');
      const purchases = 9 + 9 + EVENTS_EACH;
      const declines = 2 * (EVENTS_EACH - 9);
      assert.equal(before - after, EVENTS_EACH * 110 + purchases * 11 + declines * 25);
    });
  }

  for (const [dieAt, isReplayed] of [
    ['before 1', false],
    ['after 1', true],
  ] as const) {
    it(`settles a simulation with an Idempotency-Key once when it is killed -9 ${dieAt.replace(' ', ' commit ')}`, async () => {
      const cardId = (await createCard(partner, { amount: 1_000 })).json.id;
      const path = `/test/cards/${cardId}/simulate-transaction`;
      const body = { type: 'purchase', amount: 100 };
      const idempotencyKey = randomUUID();
      await untilKilled(dieAt, async (config) => {
        const request = { case: { mode: 'test' as const }, partner, key: idempotencyKey, path, body };
        await assert.rejects(askAt(`http://${config.host}:${config.port}`, request), /fetch failed/);
      });
      const retry = await partner.call('POST', path, { body, idempotencyKey });
      assert.equal(retry.status, 201, retry.text);
      assert.equal(retry.headers.get('idempotent-replayed') === 'true', isReplayed);
      assert.deepEqual(await transactionsOf(cardId, 'test'), [retry.json]);
      assert.deepEqual(await eventsOf(cardId), [retry.json.id]);
      assert.equal(retry.json.card_balance_after, 900);
    });
  }
});
