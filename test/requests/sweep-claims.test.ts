import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import { pino } from 'pino';
import { readAttention } from '../../exports/attention.ts';
import { createSweep, type Sweep } from '../../requests/jobs.ts';
import { ISSUE_CARD, issueCardWorkflowId } from '../../workflows/messages.ts';
import { openCommands, type TestCommands } from '../support/commands/open-commands.ts';
import { testServers } from '../support/servers.ts';
import { until } from '../support/until.ts';

const DAY_MS = 86_400_000;
const DEADLINES = { issuanceDeadlineMs: DAY_MS, topUpDeadlineMs: DAY_MS, withdrawalDeadlineMs: DAY_MS };
/** More than the sweep starts at once. */
const UNSTARTABLE = 40;

describe('the sweep of abandoned claims', () => {
  let commands: TestCommands;
  let connection: Connection;
  let client: Client;
  let sweep: Sweep;
  let logged: string[];
  let nowMs: number;
  before(async () => {
    const { address, namespace } = testServers().temporal;
    connection = await Connection.connect({ address });
    client = new Client({ connection, namespace });
  });
  beforeEach(async () => {
    commands = await openCommands();
    logged = [];
    nowMs = DAY_MS;
    const dependencies = {
      orm: commands.context.orm,
      client,
      taskQueue: `nobody-polls-${randomUUID()}`,
      config: DEADLINES,
      logger: pino({}, { write: (line: string) => logged.push(line) }),
    };
    sweep = createSweep(dependencies, () => nowMs);
  });
  afterEach(() => commands.close());
  after(() => connection.close());

  async function runPass(): Promise<void> {
    await sweep.pass(new AbortController().signal);
    await sweep.settle();
  }

  /** What a process leaves behind that dies right after it has claimed the key of a POST /cards. */
  async function abandonIssuance(partnerId: string): Promise<{ claimId: string; workflowId: string }> {
    const request = { amount: 10_000, external_ref: randomUUID() };
    const claim = await commands.claimCard({ partnerId, mode: 'live', request, leaseMs: -1 });
    assert.ok(claim.outcome === 'claimed');
    return { claimId: claim.claimId, workflowId: issueCardWorkflowId(claim.resourceId) };
  }

  /** Claims whose ids are so long that Temporal refuses workflows named after them, tried up to 9 times. */
  async function abandonUnstartable(): Promise<string> {
    const partnerId = await commands.createFundedPartner(100_000);
    await commands.owner.query(
      `INSERT INTO idempotency_claim
         (id, resource_id, partner_id, mode, operation, fingerprint, request, request_id, lease_expires_at, sweep_attempts)
       SELECT 'claim_' || repeat('0', 1000) || n, 'card_' || repeat('0', 1000) || n, $1, 'live', 'create_card', '', '', 'req_1',
         now() - interval '1 minute', n % 10
       FROM generate_series(1, $2) n`,
      [partnerId, UNSTARTABLE],
    );
    return partnerId;
  }

  const now = async (): Promise<Date> =>
    (await commands.owner.query('SELECT clock_timestamp() AS now')).rows[0].now;
  /** A start that Temporal is too slow to answer is tried again. */
  const untilRunning = (workflowId: string) =>
    until('the workflow runs', async () => {
      await runPass();
      const found = await client.workflow
        .getHandle(workflowId)
        .describe()
        .catch(() => undefined);
      return found?.status.name === 'RUNNING';
    });

  it('starts those of the same account and of others beside many that Temporal refuses', async () => {
    const unlucky = await abandonUnstartable();
    const startable = [
      await abandonIssuance(unlucky),
      await abandonIssuance(await commands.createFundedPartner(100_000)),
    ];
    for (const { workflowId } of startable) await untilRunning(workflowId);
  });

  it('tries each less often the longer it fails, but at least once a minute', async () => {
    const partnerId = await abandonUnstartable();
    const before = await now();
    await runPass();
    const after = await now();
    const { rows } = await commands.owner.query<{ attempts: number; next: Date }>(
      'SELECT sweep_attempts AS attempts, sweep_after AS next FROM idempotency_claim WHERE partner_id = $1',
      [partnerId],
    );
    assert.equal(rows.length, UNSTARTABLE);
    for (const { attempts, next } of rows) {
      const pauseMs = Math.min(5_000 * 2 ** (attempts - 1), 60_000);
      assert.ok(
        attempts > 0 && +next >= +before + pauseMs && +next <= +after + pauseMs,
        `attempt ${attempts}`,
      );
    }
  });

  it('logs those that fail in one line every ten seconds, with an example', async () => {
    await abandonUnstartable();
    await runPass();
    nowMs += 9_999;
    await runPass();
    const lines = () => logged.filter((line) => line.includes('could not restart some')).map(parse);
    const parse = (line: string) => JSON.parse(line) as { claims: number; claimId: string; error: object };
    assert.equal(lines().length, 1);
    nowMs += 1;
    await runPass();
    const [first, second, ...others] = lines();
    assert.deepEqual(others, []);
    assert.ok(first && second && first.claims + second.claims >= UNSTARTABLE);
    assert.match(first.claimId, /^claim_0/);
    assert.match(JSON.stringify(first.error), /WorkflowId exceeds/);
  });

  it('leaves to operators those that have not started for ten minutes', async () => {
    const partnerId = await abandonUnstartable();
    const settings = { ...DEADLINES, taskQueuePrefix: '', cardNetwork: 'none' as const };
    const attention = async () =>
      (await readAttention(commands.operator.orm, settings)).map(({ kind, id, mode, reason }) => [
        kind,
        id,
        mode,
        reason.split(' have ')[0],
      ]);
    assert.deepEqual(await attention(), []);
    await commands.owner.query(
      `UPDATE idempotency_claim SET created_at = created_at - interval '11 minutes'`,
    );
    const said = `${UNSTARTABLE} requests for cards, top-ups or withdrawals`;
    assert.deepEqual(await attention(), [['request', partnerId, 'live', said]]);
  });

  it('starts a workflow again that was terminated before its claim had a response', async () => {
    const { claimId, workflowId } = await abandonIssuance(await commands.createFundedPartner(100_000));
    const first = await client.workflow.start(ISSUE_CARD, {
      workflowId,
      taskQueue: `nobody-polls-${randomUUID()}`,
      args: [{ claimId, deadlineMs: DAY_MS }],
    });
    await first.terminate('by an operator, in a test');
    await untilRunning(workflowId);
  });
});
