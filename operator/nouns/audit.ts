import type { Command } from 'commander';
import { read, Since } from '../flag-values.ts';
import { readAudit } from '../reads/read-audit.ts';
import type { Verbs } from '../verbs.ts';

export function auditNoun(audit: Command, { session, verb, examples }: Verbs): void {
  audit
    .addHelpText('after', examples('audit list --since 24h'))
    .command('list')
    .description('changes by operators and reveals by partners, newest first')
    .option('--since <time>', 'only entries since then: 24h, 2026-11-20 or 2026-11-20T08:00:00Z', read(Since))
    .addHelpText(
      'after',
      examples('audit list --since 24h', 'audit list --since 2026-11-20T08:00:00Z --json'),
    )
    .action(
      verb(async ({ since }: { since?: Date }) => {
        const entries = await readAudit(await session.orm(), since ?? null);
        return {
          value: entries,
          columns: ['at', 'actor', 'action', 'subject', 'detail'],
          ...(entries.length === 0 && { note: 'Nothing was changed or revealed since then.' }),
        };
      }),
    );
}
