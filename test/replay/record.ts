import { randomUUID } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import type { WorkflowHandle } from '@temporalio/client';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import { query } from '../../db/sql.ts';
import { siblingId } from '../../domain/ids.ts';
import { issueCardWorkflowId, resolveIssuance } from '../../workflows/messages.ts';
import { mochaGlobalSetup, mochaGlobalTeardown } from '../setup.ts';
import { startTestStack, type TestStack } from '../support/stack.ts';
import { readCardRow } from '../workflows/support/cards.ts';
import { fundedPartner } from '../workflows/support/money.ts';
import { until } from '../workflows/support/until.ts';
import { CARDHOLDER, historyFile, OUTCOMES, type Outcome } from './outcomes.ts';

/**
 * Records the history of every outcome anew: `node test/replay/record.ts`, after a change of the workflow that has been
 * versioned, or for an outcome that is new. Histories of older code stay valid only as long as they replay.
 */
await mochaGlobalSetup();
const stack = await startTestStack({ cardCreationWaitMs: 30_000, issuanceDeadlineMs: 6_000 });
try {
  await Promise.all(
    Object.entries(OUTCOMES).map(async ([name, outcome]) => {
      const workflow = await run(stack, outcome);
      const history = cleaned(historyToJSON(await workflow.fetchHistory()));
      mkdirSync(new URL('./', historyFile(name)), { recursive: true });
      writeFileSync(historyFile(name), history);
      console.log(`recorded ${name}`);
    }),
  );
} finally {
  await stack.stop();
  await mochaGlobalTeardown();
}
process.exit(0);

async function run({ orm, client, createPartner }: TestStack, outcome: Outcome): Promise<WorkflowHandle> {
  const { mode, amountCents, funded, resolve } = outcome;
  const partner = funded === false ? await createPartner() : await fundedPartner(stack);
  const body = { amount: amountCents, external_ref: randomUUID(), ...CARDHOLDER };
  await partner.call('POST', '/cards', { mode, body, idempotencyKey: randomUUID() });
  const [claim] = await query<{ id: string }>(
    orm.em.fork(),
    'SELECT id FROM idempotency_claim WHERE partner_id = $1',
    [partner.id],
  );
  const cardId = siblingId('card', claim?.id ?? '');
  const workflow = client.workflow.getHandle(issueCardWorkflowId(cardId));
  if (resolve !== undefined) {
    await until('the card is overdue', async () => (await readCardRow(stack, cardId))?.overdue_since);
    await workflow.signal(resolveIssuance, { outcome: resolve });
  }
  await workflow.result();
  return workflow;
}

/** Without what belongs to the machine it was recorded on: the worker's name, and the paths in stack traces. */
function cleaned(history: string): string {
  const withoutPaths = (key: string, value: unknown) => (key === 'stackTrace' ? '' : value);
  const identity = `${process.pid}@${hostname()}`;
  return `${JSON.stringify(JSON.parse(history, withoutPaths), null, 1).replaceAll(identity, 'recorder')}\n`;
}
