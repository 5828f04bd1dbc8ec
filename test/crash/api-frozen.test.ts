import assert from 'node:assert/strict';
import { assertHandedOver, withFreezingApi } from '../support/crash/faulty-api.ts';
import { prepareIssuance } from '../support/crash/fundings.ts';
import { ask, askAt, assertEnd, CASES, readClaim, untilAnswered } from '../support/crash/operations.ts';
import type { TestStack } from '../support/stack.ts';

describe('an API process that is frozen in the first task of a workflow', () => {
  for (const when of ['before commit', 'after'] as const) {
    it(`delays nobody when it is frozen ${when === 'after' ? 'after the hold' : 'before the commit of the hold'}, and gives the same answer when it resumes`, async () => {
      const fault = { step: 'requestIssuance', run: 1, when } as const;
      const prepare = (stack: TestStack) => prepareIssuance(CASES['live 00'], stack);
      await withFreezingApi(
        fault,
        prepare,
        async ({ stack, operation: issuance, api, origin, arm, untilStanding }) => {
          arm();
          const asked = askAt(origin, issuance);
          await untilStanding();
          const claim = await readClaim(stack, issuance);
          const again = await untilAnswered(() => ask(issuance));
          await assertEnd(stack, issuance, again);
          await assertHandedOver(stack.client.workflow.getHandle(issuance.workflowIdOf(claim)));

          process.kill(api.pid, 'SIGCONT');
          const late = await asked;
          assert.deepEqual([late.status, late.text], [again.status, again.text]);
          await assertEnd(stack, issuance, again);
        },
      );
    });
  }
});
