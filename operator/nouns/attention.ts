import type { Command } from 'commander';
import type { OperatorConfig } from '../../config/operator.ts';
import type { Orm } from '../../db/orm.ts';
import type { NamedAttentionItem } from '../attention/attention-item.ts';
import { readWaitingDeposits } from '../attention/deposits.ts';
import { readWaitingOperations } from '../attention/operations.ts';
import { readGivenUp, readParked } from '../attention/webhooks.ts';
import { readPartnerNames } from '../reads/partners.ts';
import type { Verbs } from '../verbs.ts';

export function attentionNoun(attention: Command, { session, verb, examples }: Verbs): void {
  attention
    .addHelpText('after', examples('attention list'))
    .command('list')
    .description('everything that needs an operator, oldest first, with the command that resolves it')
    .addHelpText('after', examples('attention list'))
    .action(
      verb(async () => {
        const items = await readAttention(await session.orm(), session.config);
        return {
          value: items,
          columns: ['since', 'kind', 'id', 'partner_name', 'reason'],
          // Too long for a column.
          below: ['command', 'or_command'],
          ...(items.length === 0 && { note: 'Nothing needs attention.' }),
        };
      }),
    );
}

export type AttentionConfig = Pick<
  OperatorConfig,
  'issuanceDeadlineMs' | 'topUpDeadlineMs' | 'taskQueuePrefix'
>;

/** What has waited longest comes first. */
export async function readAttention(orm: Orm, config: AttentionConfig): Promise<NamedAttentionItem[]> {
  const found = await Promise.all([
    readWaitingOperations(orm, config),
    readGivenUp(orm),
    readParked(orm),
    readWaitingDeposits(orm, config.taskQueuePrefix),
  ]);
  const items = found.flat();
  const names = await readPartnerNames(
    orm,
    items.flatMap(({ partner_id }) => partner_id ?? []),
  );
  return items
    .map(({ kind, id, since, partner_id, ...rest }) => ({
      ...{ kind, id, since, partner_id },
      partner_name: partner_id === null ? null : (names.get(partner_id) ?? null),
      ...rest,
    }))
    .sort((a, b) => (`${a.since} ${a.id}` < `${b.since} ${b.id}` ? -1 : 1));
}
