import type { Client, WorkflowExecutionInfo } from '@temporalio/client';
import { sql } from 'kysely';
import type { WorkflowOperation } from '../domain/claim-operation.ts';
import { isoTime } from '../domain/iso-time.ts';
import { depositsTaskQueue } from '../platform/config/task-queues.ts';
import type { Row } from '../platform/db/entities.ts';
import type { Orm } from '../platform/db/orm.ts';
import { readStatement } from '../platform/db/sql.ts';
import {
  type ClaimRow,
  claimedWorkflow,
  claimedWorkflowId,
  readWorkflowStatus,
  startClaimed,
  WORKFLOW_OPERATIONS,
} from '../requests/claimed-workflow.ts';
import {
  CHANGE_CARD_STATUS,
  ISSUE_CARD,
  TOP_UP_CARD,
  WATCH_DEPOSIT,
  WITHDRAW_FROM_CARD,
} from '../workflows/messages.ts';
import { Since } from './flag-values.ts';
import type { Session } from './session.ts';
import { type Noun, needed, verb } from './verbs.ts';

/** An operation that a restore left inconsistent. */
interface Left {
  /**
   * `started_again`: it was pending without a running workflow. `forgotten`: Temporal knows it, the database
   * does not.
   */
  found: 'started_again' | 'forgotten';
  kind: string;
  id: string;
  partner_id: string;
  mode: string;
  card_id: string | null;
  workflow_id: string;
  since: string;
}

export const restoreNoun: Noun = {
  reconcile: verb({
    about:
      'after a restore (docs/backup.md): restart pending operations that have no running workflow, and list what Temporal knows and ' +
      'the database does not; exits with 1 if it lists any',
    takes: { since: needed('<time>', 'the moment that was restored, or earlier', Since) },
    examples: ['--since 2026-11-20T08:00:00Z'],
    async run({ since }, { session }) {
      const [started, forgotten] = [await startPending(session), await findForgotten(session, since)];
      return {
        value: [...started, ...forgotten],
        columns: ['found', 'kind', 'id', 'partner_id', 'card_id', 'since'],
        failed: forgotten.length > 0,
        note:
          forgotten.length === 0
            ? 'The database knows everything that Temporal does.'
            : 'The network may have carried out what is forgotten: docs/backup.md says what to do about each kind.',
      };
    },
  }),
};

async function startPending(session: Session): Promise<Left[]> {
  const { config, taskQueue } = session;
  const client = await session.temporal();
  const claims = await pendingClaims((await session.orm()).em.fork(), { operations: WORKFLOW_OPERATIONS });
  const started: Left[] = [];
  for (const claim of claims) {
    const { id, operation, partner_id, mode, resource_id } = claim;
    const workflow = claimedWorkflow(claim, taskQueue, config);
    const workflowId = claimedWorkflowId(workflow);
    if ((await readWorkflowStatus(client, workflowId)) === 'running') continue;
    await startClaimed(client, workflow, { again: true });
    const about = { kind: operation, id: resource_id ?? id, partner_id, mode, card_id: workflow.cardId };
    const since = isoTime(claim.created_at);
    started.push({ found: 'started_again', ...about, workflow_id: workflowId, since });
  }
  return started;
}

type PendingClaim = ClaimRow & Row<'idempotency_claim', 'created_at'>;

/** Claims without a response, and claims with one whose card, top-up or withdrawal is still pending. */
const pendingClaims = readStatement(
  (_, { operations }: { operations: readonly WorkflowOperation[] }) => sql<PendingClaim>`
    SELECT c.id, c.operation, c.partner_id, c.mode, c.card_id, c.resource_id, c.created_at
    FROM idempotency_claim c
    WHERE c.mode = 'live' AND c.operation = ANY (${operations}) AND (c.response_status IS NULL
      OR EXISTS (SELECT FROM card k WHERE k.claim_id = c.id)
      OR EXISTS (SELECT FROM card_transfer t WHERE t.claim_id = c.id))
    ORDER BY c.id`,
  { acrossTenants: 'operator' },
);

const BATCH = 500;
const KINDS: Record<string, string> = {
  [ISSUE_CARD]: 'create_card',
  [TOP_UP_CARD]: 'top_up_card',
  [WITHDRAW_FROM_CARD]: 'withdraw_from_card',
  [CHANGE_CARD_STATUS]: 'change_card_status',
  [WATCH_DEPOSIT]: 'deposit',
};

/**
 * Workflows that were started since then, and whose card, top-up, withdrawal, status change or deposit is not
 * in the database.
 */
async function findForgotten(session: Session, since: Date): Promise<Left[]> {
  const client = await session.temporal();
  const orm = await session.orm();
  const queues = [session.taskQueue, depositsTaskQueue(session.config.taskQueuePrefix)];
  const query =
    `TaskQueue IN (${queues.map(quoted)}) AND WorkflowType IN (${Object.keys(KINDS).map(quoted)}) ` +
    `AND StartTime >= ${quoted(since.toISOString())}`;
  const forgotten = new Map<string, Left>();
  for await (const batch of batches(client.workflow.list({ query }))) {
    for (const left of await findUnknown(orm, batch.map(describe))) forgotten.set(left.workflow_id, left);
  }
  return [...forgotten.values()];
}

const quoted = (text: string): string => `"${text}"`;

async function* batches(
  listed: ReturnType<Client['workflow']['list']>,
): AsyncGenerator<WorkflowExecutionInfo[]> {
  let batch: WorkflowExecutionInfo[] = [];
  for await (const one of listed) {
    batch.push(one);
    if (batch.length < BATCH) continue;
    yield batch;
    batch = [];
  }
  yield batch;
}

/** The last part of a workflow's id is what it is about (workflows/messages.ts). */
function describe({ workflowId, type, startTime, searchAttributes }: WorkflowExecutionInfo): Left {
  const attribute = (name: string) => searchAttributes[name]?.[0]?.toString() ?? null;
  return {
    found: 'forgotten',
    kind: KINDS[type] ?? type,
    id: workflowId.split('/').at(-1) ?? '',
    partner_id: attribute('PartnerId') ?? '',
    mode: attribute('Mode') ?? '',
    card_id: attribute('CardId'),
    workflow_id: workflowId,
    since: startTime.toISOString(),
  };
}

async function findUnknown(orm: Orm, described: readonly Left[]): Promise<Left[]> {
  const rows = await knownAmong(orm.em.fork(), { ids: described.map(({ id }) => id) });
  const known = new Set(rows.map(({ id }) => id));
  return described.filter(({ id }) => !known.has(id));
}

/** A refused request only leaves its claim, which has the id of what it would have made. */
const knownAmong = readStatement(
  (_, { ids }: { ids: readonly string[] }) => sql<{ id: string }>`
    SELECT id FROM card WHERE id = ANY (${ids}) UNION SELECT id FROM card_transfer WHERE id = ANY (${ids})
    UNION SELECT id FROM deposit WHERE id = ANY (${ids})
    UNION SELECT id FROM idempotency_claim WHERE id = ANY (${ids})
    UNION SELECT asked.id FROM unnest(${ids}::text[]) asked (id)
      WHERE EXISTS (SELECT FROM idempotency_claim c WHERE c.resource_id = asked.id)`,
  { acrossTenants: 'operator' },
);
