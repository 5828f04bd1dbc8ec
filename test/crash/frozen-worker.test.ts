import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { cardsTaskQueue } from '../../platform/config/task-queues.ts';
import { createCard, eventTypes, networkCardCount, readCardRow } from '../support/cards.ts';
import { arm } from '../support/crash/fault.ts';
import { startFaultyWorker, withLogs } from '../support/crash/faulty-processes.ts';
import { kill, scratchFolder, startProcess } from '../support/crash/processes.ts';
import { assertBalance, assertLedgerClean, fundedPartner, priceOf } from '../support/money.ts';
import { type Answer, startTestStack, type TestPartner, type TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';

const CARDS = 16;
/** More than the frozen worker has polls open: each takes a task, which another worker has when its 5 s are over. */
const OTHERS = 16;
const CARD_CENTS = 1_000;
/** temporal.api.enums.v1.TaskQueueType */
const WORKFLOW = 1;

describe(`a worker that is frozen in ${CARDS} issuances of one account, between lock and commit,`, () => {
  it('delays no other account, is replaced for its own account, and does no harm when it resumes', async () => {
    const folder = scratchFolder();
    const stack = await startTestStack({ cardCreationWaitMs: 240_000, logLevel: 'error' }, { worker: false });
    const [{ worker: frozen, options }, other] = await Promise.all([
      startFaultyWorker(stack, folder, 'SIGSTOP'),
      startProcess(stack.config, folder, 'worker/main.ts'),
    ]);
    const createCards = (partner: TestPartner, count: number) =>
      Promise.all(
        Array.from({ length: count }, () => createCard(partner, { amount: CARD_CENTS }, { mode: 'live' })),
      );
    try {
      const [one, two] = await Promise.all([fundedPartner(stack), fundedPartner(stack)]);
      await until('both workers poll', async () => (await pollers(stack)) === 2);

      const fault = { step: 'requestIssuance', run: 1, when: 'before commit' } as const;
      arm(options, [{ fault, partnerId: null }]);
      const asked = createCards(one, CARDS);
      await until('it is frozen', async () => existsSync(options.markerFile));
      let answered = 0;
      const others = Array.from({ length: OTHERS }, async () => {
        const [card] = await createCards(two, 1);
        answered += 1;
        return card as Answer;
      });
      // Without limits it waits for as long as the worker is frozen.
      const cards = await asked;
      assert.ok(answered >= 3, `another account had ${answered} answers meanwhile`);
      for (const { status, text } of [...cards, ...(await Promise.all(others))]) {
        assert.equal(status, 201, text);
      }
      assert.equal((await createCard(one, { amount: CARD_CENTS }, { mode: 'live' })).status, 201);

      process.kill(frozen.pid, 'SIGCONT');
      await kill(other);
      // What it held is nobody's any more, and it works.
      for (const { status, text } of await createCards(one, CARDS)) assert.equal(status, 201, text);
      for (const { json } of cards) {
        assert.equal((await readCardRow(stack, json.id))?.status, 'active');
        assert.deepEqual(await eventTypes(stack, json.id), ['card.issued']);
        assert.equal(await networkCardCount(stack, json.id), 1);
      }
      const spentBy = (count: number) => ({ spentCents: count * priceOf(CARD_CENTS), heldCents: 0 });
      await assertBalance(stack, one, 'live', spentBy(2 * CARDS + 1));
      await assertBalance(stack, two, 'live', spentBy(OTHERS));
      await assertLedgerClean(stack);
    } catch (error) {
      throw withLogs(error, stack, frozen, other);
    } finally {
      await Promise.all([kill(frozen), kill(other)]);
      await stack.stop();
    }
  });
});

/** How many workers have asked for tasks of the cards' queue. */
async function pollers({ client, config }: TestStack): Promise<number> {
  const { pollers } = await client.workflowService.describeTaskQueue({
    namespace: client.options.namespace,
    taskQueue: { name: cardsTaskQueue(config.taskQueuePrefix) },
    taskQueueType: WORKFLOW,
  });
  return new Set(pollers?.map(({ identity }) => identity)).size;
}
