import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readAttention } from '../../../attention/read-attention.ts';
import type { CommandContext } from '../../../commands/command-context.ts';
import { claimIdempotencyKey } from '../../../commands/idempotency/claim.ts';
import { sealRequest } from '../../../commands/idempotency/response.ts';
import { cardsTaskQueue } from '../../../config/task-queues.ts';
import { newId } from '../../../crypto/new-id.ts';
import type { Orm } from '../../../db/orm.ts';
import { query } from '../../../db/sql.ts';
import type { Tenant } from '../../../domain/mode.ts';
import { ISSUE_CARD, issueCardWorkflowId } from '../../../workflows/messages.ts';
import { readCardRow } from '../../support/cards.ts';
import { claimOf } from '../../support/claims.ts';
import { fundedPartner } from '../../support/money.ts';
import { asOwner } from '../../support/postgres.ts';
import { startTestStack, type TestPartner, type TestStack } from '../../support/stack.ts';
import { until } from '../../support/until.ts';

const UNSTARTABLE = 1_000;

describe('the sweep, beside 1,000 claims whose workflows Temporal refuses to start,', function () {
  this.timeout(180_000);
  let stack: TestStack;
  let unlucky: TestPartner;
  let other: TestPartner;
  before(async () => {
    stack = await startTestStack({ logLevel: 'info' });
    unlucky = await fundedPartner(stack);
    other = await fundedPartner(stack);
    await abandonUnstartable(stack.orm, { partnerId: unlucky.id, mode: 'live' }, UNSTARTABLE);
  });
  after(() => stack.stop());

  const countTried = async (times: number): Promise<number> => {
    const [row] = await query<{ count: number }>(
      stack.orm.em.fork(),
      'SELECT count(*)::int AS count FROM idempotency_claim WHERE partner_id = $1 AND sweep_attempts >= $2',
      [unlucky.id, times],
    );
    return row?.count ?? 0;
  };

  /** Abandons a live issuance and waits until it is over. @returns how long that took, in milliseconds */
  async function recover(partner: TestPartner): Promise<number> {
    const beganAt = performance.now();
    const cardId = await abandonIssuance(
      { orm: stack.orm, ring: stack.operator.ring },
      { partnerId: partner.id, mode: 'live' },
    );
    const card = () => readCardRow(stack, cardId);
    await until('the issuance goes on', async () => (await card())?.status === 'active');
    return performance.now() - beganAt;
  }

  it('starts what another account abandoned during their first attempt', async () => {
    assert.ok((await recover(other)) < 15_000);
  });

  it('starts what the same account abandoned while they are tried again and again', async () => {
    await until('each was tried', async () => (await countTried(1)) === UNSTARTABLE);
    await until('some were tried again', async () => (await countTried(2)) > 0);
    // It took a minute once. On a quiet machine it takes about 1 s.
    for (let round = 0; round < 3; round++) assert.ok((await recover(unlucky)) < 15_000);
  });

  it('logs them in a few lines, with an example', async () => {
    const lines = stack.logLines.filter((line) => line.includes('the sweep of abandoned claims'));
    assert.ok(lines.length > 0 && lines.length < 30, `${lines.length} lines`);
    const { claims, claimId, error } = JSON.parse(lines[0] ?? '');
    assert.ok(claims > 1);
    assert.match(claimId, /^claim_0/);
    assert.match(JSON.stringify(error), /WorkflowId exceeds/);
  });

  it('shows operators those that have not started for ten minutes', async () => {
    const attention = async () => {
      const dayMs = 86_400_000;
      const settings = {
        issuanceDeadlineMs: dayMs,
        topUpDeadlineMs: dayMs,
        withdrawalDeadlineMs: dayMs,
        taskQueuePrefix: '',
        cardNetwork: 'none' as const,
      };
      const items = await readAttention(stack.orm, settings);
      return items.map(({ kind, id, reason }) => [kind, id, reason.split(' (')[0]]);
    };
    assert.deepEqual(await attention(), []);
    await asOwner(
      stack,
      `UPDATE idempotency_claim SET created_at = created_at - interval '11 minutes' WHERE partner_id = $1`,
      [unlucky.id],
    );
    const said = '1000 requests for cards, top-ups or withdrawals';
    assert.deepEqual(await attention(), [['request', unlucky.id, said]]);
  });

  it('tries each less often the longer it fails, but at least once a minute', async () => {
    await until('some were tried three times', async () => (await countTried(3)) > 0);
    const pauses = await query<{ attempts: number; longest: number }>(
      stack.orm.em.fork(),
      `SELECT sweep_attempts AS attempts, max(extract(epoch FROM sweep_after - clock_timestamp()))::float AS longest
       FROM idempotency_claim WHERE partner_id = $1 AND response_status IS NULL GROUP BY 1`,
      [unlucky.id],
    );
    for (const { attempts, longest } of pauses) assert.ok(longest <= Math.min(5 * 2 ** (attempts - 1), 60));
  });
});

describe('a workflow that is terminated before its claim has a response', function () {
  this.timeout(60_000);

  it('is started again by the sweep, and completes the issuance', async () => {
    const stack = await startTestStack({}, { worker: false });
    try {
      const partner = await fundedPartner(stack);
      const cardId = await abandonIssuance(
        { orm: stack.orm, ring: stack.operator.ring },
        { partnerId: partner.id, mode: 'live' },
      );
      const claimId = await claimOf(stack, cardId);
      const workflow = await stack.client.workflow.start(ISSUE_CARD, {
        workflowId: issueCardWorkflowId(cardId),
        taskQueue: cardsTaskQueue(stack.config.taskQueuePrefix),
        args: [{ claimId, deadlineMs: 60_000 }],
      });
      await workflow.terminate('by an operator, in a test');
      await stack.startWorker();
      await until('it is active', async () => (await readCardRow(stack, cardId))?.status === 'active');
    } finally {
      await stack.stop();
    }
  });
});

/** What a process leaves behind that dies right after it has claimed the key of a POST /cards. @returns the id the card will have */
async function abandonIssuance({ orm, ring }: CommandContext, tenant: Tenant): Promise<string> {
  const claimId = newId('claim');
  const resourceId = newId('card');
  const body = { amount: 10_000, external_ref: randomUUID() };
  await claimIdempotencyKey(
    { orm, ring },
    {
      ...{ ...tenant, claimId, key: randomUUID(), operation: 'create_card', cardId: null, leaseMs: 0 },
      resourceId,
      fingerprint: Buffer.from(body.external_ref),
      sealedRequest: sealRequest(ring, claimId, body),
      requestId: newId('req'),
      apiKeyId: null,
      clientAddress: null,
    },
  );
  return resourceId;
}

/** Many abandoned claims at once, whose ids are so long that Temporal refuses workflows named after them. */
async function abandonUnstartable(orm: Orm, tenant: Tenant, count: number): Promise<void> {
  await query(
    orm.em.fork(),
    `INSERT INTO idempotency_claim (id, resource_id, partner_id, mode, operation, fingerprint, request, request_id, lease_expires_at)
     SELECT 'claim_' || repeat('0', 1000) || n, 'card_' || repeat('0', 1000) || n, $1, $2, 'create_card', '', '', 'req_1', now() - interval '1 minute'
     FROM generate_series(1, $3) n`,
    [tenant.partnerId, tenant.mode, count],
  );
}
