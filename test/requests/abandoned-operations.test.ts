import assert from 'node:assert/strict';
import { fingerprintRequest } from '../../api/http/keyed.ts';
import { newId } from '../../platform/crypto/new-id.ts';
import { claimIdempotencyKey, newResourceId } from '../../requests/claim.ts';
import { sealRequest } from '../../requests/response.ts';
import { resourceOf } from '../support/claims.ts';
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
import { type Answer, startTestStack, type TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';

const BODY = { amount: 1_000 };

/** Of those that died later than that, test/crash/killed-at-each-place.test.ts has every place. */
describe('an operation whose process died right after it had claimed the key', () => {
  let stack: TestStack;
  before(async () => {
    stack = await startTestStack({}, { hosted: false });
  });
  after(() => stack.stop());

  async function abandon(on: Operating): Promise<string> {
    const { ring } = stack.operator;
    const claimId = newId('claim');
    const operation = on.kind === TOP_UP ? 'top_up_card' : 'withdraw_from_card';
    const claim = await claimIdempotencyKey(
      { orm: stack.orm, ring },
      {
        ...{ claimId, partnerId: on.partner.id, mode: on.mode, key: 'k', operation, cardId: on.cardId },
        ...{ leaseMs: 0, requestId: newId('req'), apiKeyId: null, clientAddress: null },
        resourceId: newResourceId(operation),
        fingerprint: fingerprintRequest('post', `/v1${pathOf(on)}`, BODY),
        sealedRequest: sealRequest(ring, claimId, BODY),
      },
    );
    assert.equal(claim.outcome, 'claimed');
    return claimId;
  }

  it('is joined by a retry with its key, and found by the sweep if nobody retries', async () => {
    const all = [];
    for (const kind of [TOP_UP, WITHDRAWAL]) {
      for (const isRetried of [true, false])
        all.push({ isRetried, on: await operating(stack, kind, 'live') });
    }
    await stack.stopWorker();
    const abandoned: { on: Operating; claimId: string; answer: Promise<Answer> | null }[] = [];
    for (const { isRetried, on } of all) {
      const claimId = await abandon(on);
      const answer = isRetried ? ask(on, BODY.amount, { idempotencyKey: 'k' }) : null;
      abandoned.push({ on, claimId, answer });
    }
    await until('the retries have taken the keys over', async () => {
      const taken = 'SELECT FROM idempotency_claim WHERE id = ANY ($1) AND lease_expires_at > now()';
      const rows = await asOwner(stack, taken, [abandoned.map(({ claimId }) => claimId)]);
      return rows.length === 2;
    });
    await stack.startWorker();
    for (const { on, claimId, answer } of abandoned) {
      const id = await resourceOf(stack, claimId);
      if (answer !== null) {
        const { status, headers, json, text } = await answer;
        assert.deepEqual([status, json.id, headers.get('idempotent-replayed')], [201, id, null], text);
      }
      await until('it is made', async () => (await listed(on)).length > 0);
      const now = await settled(on, id);
      await assertShown(on, now, BODY.amount, 'succeeded');
      assert.deepEqual(await listed(on), [now]);
      await assertOneEvent(on, now, 'succeeded');
    }
  });
});
