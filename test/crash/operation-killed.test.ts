import assert from 'node:assert/strict';
import { createCard } from '../support/cards.ts';
import { arm } from '../support/crash/fault.ts';
import { startFaultyWorker } from '../support/crash/faulty-processes.ts';
import { kill, scratchFolder } from '../support/crash/processes.ts';
import { fundedPartner } from '../support/money.ts';
import { startTestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';

describe('an operation whose worker is killed -9', () => {
  for (const [when, where] of [
    ['before', 'before the card network is asked'],
    ['after', 'after the card network has answered, and before that is noted'],
  ] as const) {
    it(`still waits for the network, and says what came of the next time it is asked, if that is ${where}`, async () => {
      const stack = await startTestStack({ cardCreationWaitMs: 2_000, logLevel: 'error' }, { worker: false });
      const { worker, options } = await startFaultyWorker(stack, scratchFolder());
      try {
        const partner = await fundedPartner(stack);
        const fault = { step: 'issueCard', run: when === 'after' ? 'accepted' : 1, when } as const;
        arm(options, [{ fault, partnerId: null }]);
        const answer = await createCard(partner, { amount: 1_047 }, { mode: 'live' });
        assert.equal(answer.status, 202, answer.text);
        assert.equal(await worker.exited, 'signal SIGKILL', worker.lastLines().join('\n'));
        const path = `/operations/${answer.headers.get('operation-id')}`;
        const read = async () => (await partner.call('GET', path, { mode: 'live' })).json;
        const left = await read();
        assert.deepEqual(
          [left.status, left.waits_for, left.response_status],
          ['in_progress', 'network', 202],
        );
        assert.deepEqual([left.network.asked, left.network.last_answer], [0, null]);

        await stack.startWorker();
        const next = await until('the network is asked again', async () => {
          const operation = await read();
          return operation.network.asked > 0 && operation;
        });
        assert.deepEqual([next.status, next.network.last_answer], ['in_progress', 'pending']);
        assert.ok(next.network.last_asked_at < next.network.next_ask_at);
        assert.ok(next.network.next_ask_at < next.network.deadline);
      } finally {
        await kill(worker);
        await stack.stop();
      }
    });
  }
});
