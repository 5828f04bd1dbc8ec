import type { OperatorConfig } from '../../config/operator.ts';
import type { Orm } from '../../db/orm.ts';
import { readPartnerNames } from '../reads/partners.ts';
import type { AttentionItem, NamedAttentionItem } from './attention-item.ts';
import { readWaitingDeposits } from './deposits.ts';
import { readWaitingOperations } from './operations.ts';
import { readWithoutPartition } from './partitions.ts';
import { readGivenUp, readParked } from './webhooks.ts';

export type AttentionConfig = Pick<
  OperatorConfig,
  'issuanceDeadlineMs' | 'topUpDeadlineMs' | 'taskQueuePrefix'
>;

/** What has waited longest comes first. */
export async function readItems(orm: Orm, config: AttentionConfig): Promise<AttentionItem[]> {
  const found = await Promise.all([
    readWaitingOperations(orm, config),
    readGivenUp(orm),
    readParked(orm),
    readWaitingDeposits(orm, config.taskQueuePrefix),
    readWithoutPartition(orm),
  ]);
  return found.flat().sort((a, b) => (`${a.since} ${a.id}` < `${b.since} ${b.id}` ? -1 : 1));
}

/** {@link readItems}, with the partners' names. */
export async function readAttention(orm: Orm, config: AttentionConfig): Promise<NamedAttentionItem[]> {
  const items = await readItems(orm, config);
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
