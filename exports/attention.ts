import { readWaitingAdjustments } from '../accounts/attention.ts';
import { readWaitingOperations } from '../cards/attention.ts';
import { readContradictions } from '../cards/late-answers-attention.ts';
import { readWaitingDeposits } from '../deposits/attention.ts';
import { readWaitingPayments } from '../issuers/inbox/attention.ts';
import { readReconciliation } from '../issuers/reconciliation/attention.ts';
import { readUnfinishedTrueUps } from '../issuers/true-ups/attention.ts';
import type { OperatorConfig } from '../platform/config/operator.ts';
import { readServerLog, readWithoutPartition } from '../platform/db/attention.ts';
import type { Orm } from '../platform/db/orm.ts';
import type { AttentionItem, UnfinishedItem } from '../platform/monitoring/attention-item.ts';
import { type CountWorkers, checkHint } from '../platform/monitoring/worker-check.ts';
import { readGivenUp, readParked } from '../webhooks/attention.ts';

export type AttentionConfig = Pick<
  OperatorConfig,
  'issuanceDeadlineMs' | 'topUpDeadlineMs' | 'withdrawalDeadlineMs' | 'taskQueuePrefix' | 'cardNetwork'
>;

/**
 * What has waited longest comes first. It is read with one connection: if a table is locked, the others stay
 * free.
 */
export async function readItems(orm: Orm, config: AttentionConfig): Promise<UnfinishedItem[]> {
  const found = [
    await readWaitingOperations(orm, config),
    await readContradictions(orm),
    await readGivenUp(orm),
    await readParked(orm),
    await readWaitingDeposits(orm, config.taskQueuePrefix),
    await readWaitingPayments(orm),
    await readReconciliation(orm, config.cardNetwork),
    await readUnfinishedTrueUps(orm),
    await readWithoutPartition(orm),
    await readWaitingAdjustments(orm),
    await readServerLog(orm),
  ];
  return found.flat().sort((a, b) => (`${a.since} ${a.id}` < `${b.since} ${b.id}` ? -1 : 1));
}

/** {@link readItems}, with what to check if a worker should have done its work. */
export async function readAttention(
  orm: Orm,
  config: AttentionConfig,
  countWorkers: CountWorkers = async () => null,
): Promise<AttentionItem[]> {
  const items = await readItems(orm, config);
  return Promise.all(items.map((item) => withCheck(item, countWorkers)));
}

async function withCheck(
  { worker, ...item }: UnfinishedItem,
  countWorkers: CountWorkers,
): Promise<AttentionItem> {
  if (worker === undefined) return item;
  return { ...item, reason: `${item.reason}: ${await checkHint(worker, countWorkers)}` };
}
