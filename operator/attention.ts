import type { Command } from 'commander';
import { readPartnerNames } from '../accounts/reads.ts';
import { readAttention } from '../exports/attention.ts';
import type { Verbs } from './verbs.ts';

export function attentionNoun(attention: Command, { session, verb, examples }: Verbs): void {
  attention
    .addHelpText('after', examples('attention list'))
    .command('list')
    .description('everything that needs an operator, oldest first, with the command that resolves it')
    .addHelpText('after', examples('attention list'))
    .action(
      verb(async () => {
        const orm = await session.orm();
        const items = await readAttention(orm, session.config, session.countWorkers);
        const partnerIds = items.flatMap(({ partner_id }) => partner_id ?? []);
        const names = await readPartnerNames(orm, partnerIds);
        return {
          value: items.map(({ kind, id, since, mode, partner_id, ...rest }) => ({
            kind,
            id,
            since,
            mode,
            partner_id,
            partner_name: partner_id === null ? null : (names.get(partner_id) ?? null),
            ...rest,
          })),
          columns: ['since', 'kind', 'mode', 'id', 'partner_name', 'reason'],
          // Too long for a column.
          below: ['at_issuer', 'command', 'or_command'],
          note: items.length === 0 ? 'Nothing needs attention.' : undefined,
        };
      }),
    );
}
