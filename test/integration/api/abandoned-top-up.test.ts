import assert from 'node:assert/strict';
import { fingerprintRequest } from '../../../api/http/keyed.ts';
import { acceptTopUp, completeTopUp } from '../../../commands/funding/end-topup.ts';
import { beginTopUp } from '../../../commands/funding/topup.ts';
import { claimIdempotencyKey } from '../../../commands/idempotency/claim.ts';
import { sealRequest } from '../../../commands/idempotency/response.ts';
import { newId } from '../../../crypto/new-id.ts';
import { resourceOf } from '../../support/claims.ts';
import { begun } from '../../support/commands/open-commands.ts';
import { balanceOf } from '../../support/money.ts';
import { startTestStack, type TestStack } from '../../support/stack.ts';
import {
  type Cardholder,
  cardholder,
  listTopUps,
  settledTopUp,
  topUp,
  topUpEvents,
} from '../../support/top-ups.ts';

const FUNDS = 10_000;
const BODY = { amount: 1_000 };

describe('a top-up whose process died', () => {
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
    const resourceId = newId('topup');
    const claim = await claimIdempotencyKey(
      { orm, ring },
      {
        ...{ claimId, partnerId: partner.id, mode, key: 'k', operation: 'top_up_card', cardId, leaseMs: 0 },
        resourceId,
        fingerprint: fingerprintRequest('post', `/v1/cards/${cardId}/topups`, BODY),
        sealedRequest: sealRequest(ring, claimId, BODY),
        requestId: newId('req'),
        apiKeyId: null,
        clientAddress: null,
      },
    );
    assert.deepEqual(claim, { outcome: 'claimed', claimId, resourceId });
    return claimId;
  }

  const open = (claimId: string) => begun(beginTopUp, service(), claimId);
  const accept = (claimId: string) => acceptTopUp(service(), claimId);
  const succeed = (claimId: string) => completeTopUp(service(), claimId);
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
      const joined = topUp(holder, BODY.amount, { idempotencyKey: 'k' });
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

      const now = await settledTopUp(holder, answer.json.id);
      assert.deepEqual([now.status, now.card_balance], ['succeeded', 2_000]);
      assert.deepEqual((await listTopUps(holder)).data, [now]);
      assert.deepEqual(await balanceOf(holder.partner, 'live'), [FUNDS - 1_050, 0, FUNDS - 1_050]);
      assert.equal((await topUpEvents(stack, holder)).length, 1);
    });
  }

  it('is found by the sweep if nobody retries', async () => {
    const holder = await cardholder(stack, 'live', FUNDS);
    const claimId = await abandon(holder);
    for (let made: unknown[] = []; made.length === 0; ) made = (await listTopUps(holder)).data;
    assert.equal((await settledTopUp(holder, await resourceOf(stack, claimId))).status, 'succeeded');
  });
});
