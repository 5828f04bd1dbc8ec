import assert from 'node:assert/strict';
import { fingerprintRequest } from '../../../api/http/keyed.ts';
import { claimIdempotencyKey } from '../../../commands/idempotency/claim.ts';
import { sealRequest } from '../../../commands/idempotency/response.ts';
import { acceptWithdrawal, completeWithdrawal } from '../../../commands/withdrawals/end-withdrawal.ts';
import { beginWithdrawal } from '../../../commands/withdrawals/withdrawal.ts';
import { newId } from '../../../crypto/new-id.ts';
import { resourceOf } from '../../support/claims.ts';
import { begun } from '../../support/commands/open-commands.ts';
import { balanceOf } from '../../support/money.ts';
import { startTestStack, type TestStack } from '../../support/stack.ts';
import { type Cardholder, cardholder } from '../../support/top-ups.ts';
import { listWithdrawals, settledWithdrawal, withdraw, withdrawalEvents } from '../../support/withdrawals.ts';

const FUNDS = 10_000;
const BODY = { amount: 400 };

describe('a withdrawal whose process died', () => {
  let stack: TestStack;
  before(async () => {
    stack = await startTestStack({ cardCreationWaitMs: 30_000 }, { hosted: false });
  });
  after(() => stack.stop());

  const service = () => ({ orm: stack.orm, ring: stack.operator.ring, liveNetworkConfigured: true });

  /** What a process leaves behind that dies right after it has claimed the key. */
  async function abandon({ partner, mode, cardId }: Cardholder): Promise<string> {
    const { orm, ring } = service();
    const claimId = newId('claim');
    const resourceId = newId('wdr');
    const claim = await claimIdempotencyKey(
      { orm, ring },
      {
        claimId,
        partnerId: partner.id,
        mode,
        key: 'k',
        operation: 'withdraw_from_card',
        cardId,
        leaseMs: 0,
        resourceId,
        fingerprint: fingerprintRequest('post', `/v1/cards/${cardId}/withdrawals`, BODY),
        sealedRequest: sealRequest(ring, claimId, BODY),
        requestId: newId('req'),
        apiKeyId: null,
        clientAddress: null,
      },
    );
    assert.deepEqual(claim, { outcome: 'claimed', claimId, resourceId });
    return claimId;
  }

  const open = (claimId: string) => begun(beginWithdrawal, service(), claimId);
  const accept = (claimId: string) => acceptWithdrawal(service(), claimId);
  const succeed = (claimId: string) => completeWithdrawal(service(), claimId);
  for (const [what, steps, status, replayed] of [
    ['after the claim', [], 201, null],
    ['after the hold', [open], 201, null],
    ['after the 202', [open, accept], 202, 'true'],
    ['after the end', [open, succeed], 201, 'true'],
  ] as const) {
    it(`is joined by a retry with its key ${what}`, async () => {
      const holder = await cardholder(stack, 'live', FUNDS);
      await stack.stopWorker();
      const claimId = await abandon(holder);
      for (const step of steps) await step(claimId);
      const joined = withdraw(holder, BODY.amount, { idempotencyKey: 'k' });
      await stack.startWorker();
      const answer = await joined;
      assert.deepEqual(
        [answer.status, answer.json.id],
        [status, await resourceOf(stack, claimId)],
        answer.text,
      );
      assert.equal(answer.headers.get('idempotent-replayed'), replayed);
      // The sweep takes one that nobody joins. If it has a response already, no workflow follows.
      if (what === 'after the 202') await succeed(claimId);

      const now = await settledWithdrawal(holder, answer.json.id);
      assert.deepEqual([now.status, now.card_balance], ['succeeded', 600]);
      assert.deepEqual((await listWithdrawals(holder)).data, [now]);
      assert.deepEqual(await balanceOf(holder.partner, 'live'), [FUNDS + 400, 0, FUNDS + 400]);
      assert.equal((await withdrawalEvents(stack, holder)).length, 1);
    });
  }

  it('is found by the sweep if nobody retries', async () => {
    const holder = await cardholder(stack, 'live', FUNDS);
    const claimId = await abandon(holder);
    for (let made: unknown[] = []; made.length === 0; ) made = (await listWithdrawals(holder)).data;
    assert.equal((await settledWithdrawal(holder, await resourceOf(stack, claimId))).status, 'succeeded');
  });
});
