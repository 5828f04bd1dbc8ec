import type { Command } from 'commander';
import { readAttention } from '../attention/read-attention.ts';
import type { Verbs } from '../verbs.ts';

export function attentionNoun(attention: Command, { session, verb, examples }: Verbs): void {
  attention
    .addHelpText('after', examples('attention list'))
    .command('list')
    .description('everything that needs an operator, oldest first, with the command that resolves it')
    .addHelpText('after', examples('attention list'))
    .action(
      verb(async () => {
        const items = await readAttention(await session.orm(), session.config, session.countWorkers);
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
