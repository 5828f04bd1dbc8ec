import assert from 'node:assert/strict';
import { fingerprintRequest } from '../../api/http/keyed.ts';
import { acceptTopUp, completeTopUp } from '../../cards/transfers/end-top-up.ts';
import { acceptWithdrawal, completeWithdrawal } from '../../cards/transfers/end-withdrawal.ts';
import { beginTopUp } from '../../cards/transfers/top-up.ts';
import { beginWithdrawal } from '../../cards/transfers/withdraw.ts';
import { newId } from '../../platform/crypto/new-id.ts';
import { claimIdempotencyKey, newResourceId } from '../../requests/claim.ts';
import { sealRequest } from '../../requests/response.ts';
import { resourceOf } from '../support/claims.ts';
import { begun } from '../support/commands/open-commands.ts';
import {
  ask,
  assertOneEvent,
  assertShown,
  listed,
  type Operating,
  operating,
  pathOf,
  settled,
  TOP_UP,
  WITHDRAWAL,
} from '../support/operation-kinds.ts';
import { asOwner } from '../support/postgres.ts';
import { startTestStack, type TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';

const BODY = { amount: 1_000 };

describe('an operation whose process died', () => {
  let stack: TestStack;
  before(async () => {
    stack = await startTestStack({}, { hosted: false });
  });
  after(() => stack.stop());

  const service = () => ({ orm: stack.orm, ring: stack.operator.ring, liveNetworkConfigured: true });
  const KINDS = [
    {
      kind: TOP_UP,
      operation: 'top_up_card',
      begin: (claimId: string) => begun(beginTopUp, service(), claimId),
      accept: (claimId: string) => acceptTopUp(service(), claimId),
      complete: (claimId: string) => completeTopUp(service(), claimId),
    },
    {
      kind: WITHDRAWAL,
      operation: 'withdraw_from_card',
      begin: (claimId: string) => begun(beginWithdrawal, service(), claimId),
      accept: (claimId: string) => acceptWithdrawal(service(), claimId),
      complete: (claimId: string) => completeWithdrawal(service(), claimId),
    },
  ] as const;
  type Kind = (typeof KINDS)[number];

  /** What a process leaves behind that dies right after it has claimed the key. */
  async function abandon({ partner, mode, cardId }: Operating, on: Operating, operation: Kind['operation']) {
    const { orm, ring } = service();
    const claimId = newId('claim');
    const claim = await claimIdempotencyKey(
      { orm, ring },
      {
        ...{ claimId, partnerId: partner.id, mode, key: 'k', operation, cardId, leaseMs: 0 },
        resourceId: newResourceId(operation),
        fingerprint: fingerprintRequest('post', `/v1${pathOf(on)}`, BODY),
        sealedRequest: sealRequest(ring, claimId, BODY),
        requestId: newId('req'),
        apiKeyId: null,
        clientAddress: null,
      },
    );
    assert.equal(claim.outcome, 'claimed');
    return claimId;
  }

  it('is joined by a retry with its key, wherever it died, and found by the sweep if nobody retries', async () => {
    const abandoned = [];
    for (const kind of KINDS) {
      for (const [steps, status, replayed] of [
        [[], 201, null],
        [[kind.begin], 201, null],
        [[kind.begin, kind.accept], 202, 'true'],
        [[kind.begin, kind.complete], 201, 'true'],
        [[], null, null],
      ] as const) {
        abandoned.push({ ...kind, steps, status, replayed, on: await operating(stack, kind.kind, 'live') });
      }
    }
    await stack.stopWorker();
    const joined = [];
    for (const one of abandoned) {
      const claimId = await abandon(one.on, one.on, one.operation);
      for (const step of one.steps) await step(claimId);
      const answer = one.status === null ? null : ask(one.on, BODY.amount, { idempotencyKey: 'k' });
      joined.push({ ...one, claimId, answer });
    }
    const waiting = joined.filter(({ status, replayed }) => status === 201 && replayed === null);
    await until('the retries have taken the keys over', async () => {
      const rows = await asOwner(
        stack,
        'SELECT FROM idempotency_claim WHERE id = ANY ($1) AND lease_expires_at > now()',
        [waiting.map(({ claimId }) => claimId)],
      );
      return rows.length === waiting.length;
    });
    await stack.startWorker();
    for (const { on, claimId, answer, status, replayed, complete } of joined) {
      const id = await resourceOf(stack, claimId);
      if (answer !== null) {
        const { headers, json, text, ...answered } = await answer;
        assert.deepEqual([answered.status, json.id], [status, id], text);
        assert.equal(headers.get('idempotent-replayed'), replayed);
      }
      // The sweep takes those without a response. No workflow follows one that has it already.
      if (status === 202) await complete(claimId);
      else await until('it is made', async () => (await listed(on)).length > 0);
      const now = await settled(on, id);
      await assertShown(on, now, BODY.amount, 'succeeded');
      assert.deepEqual(await listed(on), [now]);
      await assertOneEvent(on, now, 'succeeded');
    }
  });
});
