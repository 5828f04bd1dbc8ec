import { assertAnyHistoryAddsUp } from '../support/monthly-statements.ts';
import { sharedStack } from '../support/shared-stack.ts';

describe('statements', () => {
  it('add up for a hundred histories', async () => {
    await assertAnyHistoryAddsUp(await sharedStack(), 100);
  });
});
