import { setTimeout as sleep } from 'node:timers/promises';
import { readAttention } from '../../exports/attention.ts';
import { checkLedger } from '../../ledger/check-ledger.ts';
import { query } from '../../platform/db/sql.ts';
import { scanChainWorkflowId } from '../../workflows/messages.ts';
import { untilThere } from '../model/clients/running-service.ts';
import { Difference } from '../model/difference.ts';
import type { Receivers } from './receivers.ts';
import { DEADLINE_MS, type SoakedStack } from './soaked-stack.ts';

const GIVE_UP_AFTER_MS = 120_000;

/**
 * Compares after the load has ended and the kills have stopped. Each read returns what should not be there, and is repeated
 * until it returns nothing, for at most two minutes.
 * @returns a difference for each read that still returns something then
 */
export async function compareAtTheEnd(stack: SoakedStack, receivers: Receivers): Promise<Difference[]> {
  const { orm, operator, client } = stack.service.stack;
  const sqlRead = (statement: string) => async () => {
    const rows = await query<{ id: string }>(orm.em.fork(), statement, []);
    return rows.map(({ id }) => id);
  };
  // The chain's time goes on, so that deposits without a payment expire.
  stack.service.chain.wake(null);
  const deadlines = {
    issuanceDeadlineMs: DEADLINE_MS,
    topUpDeadlineMs: DEADLINE_MS,
    withdrawalDeadlineMs: DEADLINE_MS,
    taskQueuePrefix: '',
    cardNetwork: 'simulated' as const,
  };
  const reads: [what: string, read: () => Promise<string[]>][] = [
    ['a receiver has not accepted these events', () => findUndelivered(stack, receivers)],
    ['these Idempotency-Keys have no answer', sqlRead(UNANSWERED)],
    ['money is held for', sqlRead(HELD)],
    [
      'service and network disagree on what was loaded or withdrawn, or on how often',
      sqlRead(MOVED_DIFFERENTLY),
    ],
    ['service and network disagree on the status of', sqlRead(STATUS_DIFFERS)],
    ['these payments are neither credited nor returned', sqlRead(UNJUDGED)],
    ['these workflows are still running', () => findRunning(client)],
    [
      'this waits for a person',
      async () => (await readAttention(operator.orm, deadlines)).map(({ kind, id }) => `${kind} ${id}`),
    ],
    [
      'the invariants of the ledger',
      async () => (await checkLedger(orm.em.fork())).map((one) => JSON.stringify(one)),
    ],
  ];
  const found = await Promise.all(reads.map(([what, read]) => untilNothing(what, read)));
  stack.service.chain.settle();
  return found.filter((difference) => difference !== undefined);
}

async function untilNothing(what: string, read: () => Promise<string[]>): Promise<Difference | undefined> {
  const giveUpAt = Date.now() + GIVE_UP_AFTER_MS;
  for (;;) {
    const left = await untilThere(read);
    if (left.length === 0) return undefined;
    if (Date.now() > giveUpAt) return new Difference(what, left);
    await sleep(500);
  }
}

/** Our partners' events that no receiver accepted as they are stored, or that the service has not marked as delivered. */
async function findUndelivered(
  { service, partnerIds }: SoakedStack,
  { accepted }: Receivers,
): Promise<string[]> {
  const events = await query<{ id: string; body: string; status: string }>(
    service.stack.orm.em.fork(),
    `SELECT e.id, e.body, d.status FROM event e JOIN delivery d ON d.event_id = e.id WHERE e.partner_id = ANY ($1)`,
    [partnerIds],
  );
  const known = new Set(events.map(({ id }) => id));
  return [
    ...events
      .filter(({ id, body, status }) => status !== 'delivered' || accepted.get(id) !== body)
      .map(({ id, status }) => `${id} ${status}`),
    ...[...accepted.keys()].filter((id) => !known.has(id)).map((id) => `${id} is no event`),
  ];
}

async function findRunning(client: SoakedStack['service']['stack']['client']): Promise<string[]> {
  const running: string[] = [];
  for await (const { workflowId } of client.workflow.list({ query: 'ExecutionStatus = "Running"' })) {
    if (workflowId !== scanChainWorkflowId('private', '')) running.push(workflowId);
  }
  return running;
}

const UNANSWERED = 'SELECT id FROM idempotency_claim WHERE response_status IS NULL';

const HELD = 'SELECT id FROM ledger.account WHERE held <> 0';

const UNJUDGED = `SELECT tx_hash AS id FROM deposit_payment WHERE status IN ('found', 'in_review')`;

/** The network never finishes an amount that ends in 47: an operator decides it. */
const MOVED_DIFFERENTLY = `
  WITH ours AS (
    SELECT id, funding_cents AS cents FROM card
    WHERE mode = 'live' AND status IN ('active', 'frozen', 'blocked')
    UNION ALL
    SELECT id, amount_cents FROM card_transfer WHERE mode = 'live' AND status = 'succeeded'
  ), theirs AS (
    SELECT token AS id, (request ->> 'amountCents')::bigint AS cents FROM simulated_network.operation
    WHERE kind IN ('card.issuance', 'card.topup', 'card.withdrawal') AND outcome = 'succeeded'
  )
  SELECT id FROM ours FULL JOIN theirs USING (id, cents)
  WHERE (ours.id IS NULL OR theirs.id IS NULL) AND cents % 100 <> 47`;

const STATUS_DIFFERS = `
  SELECT c.id FROM card c LEFT JOIN simulated_network.card n ON n.token = c.id
  WHERE c.mode = 'live' AND c.status IN ('active', 'frozen', 'blocked')
    AND (n.status IS DISTINCT FROM c.status OR n.network_card_id IS DISTINCT FROM c.network_card_id)`;
