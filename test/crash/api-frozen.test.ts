import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { arm } from '../support/crash/fault.ts';
import { assertHandedOver, startFaultyApi, withLogs } from '../support/crash/faulty-processes.ts';
import { prepareIssuance } from '../support/crash/fundings.ts';
import { ask, askAt, assertEnd, CASES, readClaim, untilAnswered } from '../support/crash/operations.ts';
import { kill, scratchFolder } from '../support/crash/processes.ts';
import { assertLedgerClean } from '../support/money.ts';
import { startTestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';

describe('an API process that is frozen in the first task of a workflow', () => {
  for (const when of ['before commit', 'after'] as const) {
    it(`delays nobody when it is frozen ${when === 'after' ? 'after the hold' : 'before the commit of the hold'}, and gives the same answer when it resumes`, async () => {
      const stack = await startTestStack(
        { cardCreationWaitMs: 240_000, logLevel: 'error' },
        { worker: false },
      );
      const { api, options, origin, untilHosting } = await startFaultyApi(stack, scratchFolder(), 'SIGSTOP');
      try {
        await stack.startWorker();
        const issuance = await prepareIssuance(CASES['live 00'], stack);
        await untilHosting();
        const fault = { step: 'requestIssuance', run: 1, when } as const;
        arm(options, [{ fault, partnerId: issuance.partner.id }]);
        const asked = askAt(origin, issuance);
        await until('it stands there', async () => existsSync(options.markerFile));
        const claim = await readClaim(stack, issuance);
        const again = await untilAnswered(() => ask(issuance));
        await assertEnd(stack, issuance, again);
        await assertHandedOver(stack.client.workflow.getHandle(issuance.workflowIdOf(claim)));

        process.kill(api.pid, 'SIGCONT');
        const late = await asked;
        assert.deepEqual([late.status, late.text], [again.status, again.text]);
        await assertEnd(stack, issuance, again);
        await assertLedgerClean(stack);
      } catch (error) {
        throw withLogs(error, stack, api);
      } finally {
        await kill(api);
        await stack.stop();
      }
    });
  }
});
