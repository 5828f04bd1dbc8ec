import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import type { FakeLithic } from '../../../dev/lithic/fake-lithic.ts';
import { makeCard } from '../../../dev/lithic/objects.ts';
import { API_KEY, allTaken, lithicCard, startLithicStack } from '../../support/adapters/lithic.ts';
import { createCard } from '../../support/cards.ts';
import { bundleFile, dieAt, kill, scratchFolder, startProcess } from '../../support/crash/processes.ts';
import { assertLedgerClean, fundedPartner } from '../../support/money.ts';
import { reconciler } from '../../support/operator/reconcile.ts';
import { asOwner } from '../../support/postgres.ts';
import type { TestPartner, TestStack } from '../../support/stack.ts';
import { until } from '../../support/until.ts';

const live = { mode: 'live' } as const;
const DUE = `UPDATE measurement SET due_at = '-infinity' WHERE name = 'reconciliation'`;

describe('a reconciliation', () => {
  let fake: FakeLithic;
  let stack: TestStack;
  let stop: () => Promise<void>;
  let partner: TestPartner;
  const folder = scratchFolder();
  let operator: ReturnType<typeof reconciler>;
  before(async () => {
    ({ fake, stack, stop } = await startLithicStack({}, { worker: false }));
    partner = await fundedPartner(stack, 1_000_000);
    operator = reconciler(stack, { LITHIC_API_KEY: API_KEY, LITHIC_BASE_URL: fake.url });
  });
  after(async () => {
    await assertLedgerClean(stack);
    await stop();
  });

  for (const [text, when] of [
    // Before it takes the run, and right afterwards.
    ['UPDATE measurement SET due_at', 'before'],
    ['UPDATE measurement SET due_at', 'after'],
    ['LEFT JOIN card c ON c.network_card_id', 'after'],
    ['INSERT INTO reconciliation_seen', 'before'],
    ['INSERT INTO reconciliation_seen', 'after'],
    ['FROM (SELECT * FROM card WHERE', 'after'],
    ['LEFT JOIN payment y ON y.mode', 'after'],
    ['DELETE FROM reconciliation_seen', 'before'],
    ['DELETE FROM reconciliation_seen', 'after'],
    // The transaction that was never told.
    ['INSERT INTO card_transaction', 'before'],
    ['INSERT INTO card_transaction', 'before commit'],
    ['INSERT INTO card_transaction', 'after commit'],
    ['INSERT INTO reconciliation_finding AS f', 'before'],
    ['INSERT INTO reconciliation_finding AS f', 'before commit'],
    ['INSERT INTO reconciliation_finding AS f', 'after commit'],
    ['DELETE FROM reconciliation_finding', 'before commit'],
    ['UPDATE measurement SET measured_at', 'before'],
    ['UPDATE measurement SET measured_at', 'after'],
  ] as const) {
    it(`finds each difference once, and books once what was never told, if its worker is killed -9 ${when} "${text}"`, async () => {
      await stack.startWorker();
      const { json } = await createCard(partner, { amount: 1_000 }, live);
      const card = await lithicCard(fake, stack, json.id);
      const transaction = await fake.program.authorize({ card, amount: 300 });
      await allTaken(fake, stack);
      fake.program.posts.holdsEvents = true;
      fake.program.record(transaction, { type: 'CLEARING', amount: 300 });
      fake.program.posts.events.splice(-1);
      fake.program.posts.holdsEvents = false;
      card.state = 'PAUSED';
      const byHand = makeCard({ memo: 'by hand' }, new Date());
      fake.program.cards.set(byHand.token, byHand);
      const gone = (await createCard(partner, { amount: 1_000 }, live)).json.id;
      const goneCard = await lithicCard(fake, stack, gone);
      fake.program.cards.delete(goneCard.token);
      await stack.stopWorker();

      const { markerFile, ...dying } = dieAt(folder, text, when);
      await asOwner(stack, DUE);
      const file = 'test/support/crash/reconciling-worker.ts';
      const args = [await bundleFile(folder)];
      const worker = await startProcess(stack.config, folder, file, {
        args,
        ...dying,
      });
      await until('the worker is killed there', () => existsSync(markerFile));
      assert.equal(await worker.exited, 'signal SIGKILL', worker.lastLines().join('\n'));

      // As ten minutes later.
      await asOwner(stack, DUE);
      const next = await startProcess(stack.config, folder, file, { args });
      await until('another worker has done it', async () => {
        const done = await asOwner(
          stack,
          `SELECT FROM measurement WHERE name = 'reconciliation' AND due_at > now() + interval '20 minutes'`,
        );
        return done.length > 0;
      });
      await kill(next);
      const found = (await operator.operate('network', 'findings')) as {
        problem: string;
        object_id: string;
      }[];
      assert.deepEqual(found.map(({ problem, object_id }) => [problem, object_id]).sort(), [
        ['different', json.id],
        ['missing_at_issuer', gone],
        ['missing_here', null],
      ]);
      const { data } = (await partner.call('GET', `/cards/${json.id}/transactions`, live)).json;
      assert.deepEqual(
        data.map(({ type, amount }: { type: string; amount: number }) => [type, amount]),
        [['purchase', 300]],
      );
      card.state = 'OPEN';
      fake.program.cards.delete(byHand.token);
      fake.program.cards.set(goneCard.token, goneCard);
      // What only the issuer has may have been made at any time since the nightly run's beginning, a week ago.
      await operator.reconcile(new Date(Date.now() - 8 * 86_400_000).toISOString());
      assert.deepEqual(await operator.differences(), []);
    });
  }
});
