import type { OperatorConfig } from '../../config/operator.ts';
import type { Orm } from '../../db/orm.ts';
import { readPartnerNames } from '../reads/partners.ts';
import { type CountWorkers, checkOf } from '../worker-check.ts';
import { readWaitingAdjustments } from './adjustments.ts';
import type { AttentionItem, NamedAttentionItem, UnfinishedItem } from './attention-item.ts';
import { readWaitingDeposits } from './deposits.ts';
import { readKept } from './kept-transactions.ts';
import { readContradictions } from './late-answers.ts';
import { readWaitingOperations } from './operations.ts';
import { readWithoutPartition } from './partitions.ts';
import { readServerLog } from './server-log.ts';
import { readGivenUp, readParked } from './webhooks.ts';

export type AttentionConfig = Pick<
  OperatorConfig,
  'issuanceDeadlineMs' | 'topUpDeadlineMs' | 'taskQueuePrefix'
>;

/** What has waited longest comes first. */
export async function readItems(orm: Orm, config: AttentionConfig): Promise<UnfinishedItem[]> {
  const found = await Promise.all([
    readWaitingOperations(orm, config),
    readContradictions(orm),
    readGivenUp(orm),
    readParked(orm),
    readWaitingDeposits(orm, config.taskQueuePrefix),
    readKept(orm),
    readWithoutPartition(orm),
    readWaitingAdjustments(orm),
    readServerLog(orm),
  ]);
  return found.flat().sort((a, b) => (`${a.since} ${a.id}` < `${b.since} ${b.id}` ? -1 : 1));
}

/** {@link readItems}, with the partners' names, and with what to check where a worker should have done its work. */
export async function readAttention(
  orm: Orm,
  config: AttentionConfig,
  countWorkers: CountWorkers = async () => null,
): Promise<NamedAttentionItem[]> {
  const items = await Promise.all(
    (await readItems(orm, config)).map((item) => withCheck(item, countWorkers)),
  );
  const names = await readPartnerNames(
    orm,
    items.flatMap(({ partner_id }) => partner_id ?? []),
  );
  return items.map(({ kind, id, since, partner_id, ...rest }) => ({
    ...{ kind, id, since, partner_id },
    partner_name: partner_id === null ? null : (names.get(partner_id) ?? null),
    ...rest,
  }));
}

async function withCheck(
  { worker, ...item }: UnfinishedItem,
  countWorkers: CountWorkers,
): Promise<AttentionItem> {
  if (worker === undefined) return item;
  return { ...item, reason: `${item.reason}: ${await checkOf(worker, countWorkers)}` };
}
