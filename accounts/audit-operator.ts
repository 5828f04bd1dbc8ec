import type { Command } from 'commander';
import { WrongUsage } from '../operator/errors.ts';
import { read, Since, Text } from '../operator/flag-values.ts';
import { renderJson } from '../operator/render.ts';
import type { Verbs } from '../operator/verbs.ts';
import { type Anchor, exportAudit, verifyAudit } from './audit-chain-operator.ts';
import { readAudit } from './audit-operator-reads.ts';

export function auditNoun(audit: Command, verbs: Verbs): void {
  const { session, verb, examples } = verbs;
  audit
    .addHelpText('after', examples('audit list --since 24h', 'audit verify'))
    .command('list')
    .description('changes by operators, and what partners did with their keys and revealed, newest first')
    .option('--subject <id>', 'only entries about this: a card, a partner, an event, …', read(Text(200)))
    .option(
      '--actor <name>',
      'only entries by this operator (OPERATOR, or user@host); or what this partner did, or this partner/key',
      read(Text(300)),
    )
    .option('--since <time>', 'only entries since then: 24h, 2026-11-20 or 2026-11-20T08:00:00Z', read(Since))
    .addHelpText(
      'after',
      examples(
        'audit list --since 24h',
        'audit list --subject card_01k0…',
        'audit list --actor ada@ops-1 --since 2026-11-20T08:00:00Z --json',
      ),
    )
    .action(
      verb(async ({ since = null, subject = null, actor = null }: AuditFlags) => {
        const entries = await readAudit(await session.orm(), { since, subject, actor });
        return {
          value: entries,
          columns: COLUMNS,
          note: entries.length === 0 ? 'Nothing that matches was changed or revealed.' : undefined,
        };
      }),
    );
  verifyVerb(audit, verbs);
  exportVerb(audit, verbs);
}

function verifyVerb(audit: Command, { session, verb, examples }: Verbs): void {
  audit
    .command('verify')
    .description(
      'check that no entry was changed, removed or inserted since workers chained it; exits with 1 if one was',
    )
    .option('--since <time>', 'older entries may be gone, because their year was dropped', read(Since))
    .option('--head <seq:hash>', 'the chain must contain this link, the head that an earlier run printed')
    .addHelpText('after', examples('audit verify', 'audit verify --head 4711:9f2c…'))
    .action(
      verb(async ({ since = null, head }: { since?: Date | null; head?: string }) => {
        const anchor = head === undefined ? null : parseAnchor(head);
        const value = await verifyAudit(await session.orm(), { since, anchor });
        return { value, failed: !value.whole, note: describeVerification(value) };
      }),
    );
}

function parseAnchor(head: string): Anchor {
  const [, seq, hash] = /^([1-9]\d{0,17}):([0-9a-f]{64})$/.exec(head) ?? [];
  if (seq === undefined || hash === undefined)
    throw new WrongUsage('--head is the number and the hash that "operator audit verify" printed as head');
  return { seq, hash };
}

function describeVerification({ whole, waiting }: { whole: boolean; waiting: number }): string {
  if (!whole)
    return 'Somebody changed the log around the service. Keep the database as it is, and compare with what "operator audit export" sent elsewhere.';
  return waiting === 0
    ? 'Every entry is as it was recorded. Keep the head elsewhere: with --head, a later run shows whether the chain was cut off or made anew.'
    : 'Every chained entry is as it was recorded. Workers chain waiting ones within seconds: if waiting_since is older, check that one is running.';
}

function exportVerb(audit: Command, { session, examples, out, err }: Verbs): void {
  audit
    .command('export')
    .description('print entries as JSON lines, in the order in which they were chained')
    .requiredOption(
      '--since <time>',
      'entries since then: 24h, 2026-11-20 or 2026-11-20T08:00:00Z',
      read(Since),
    )
    .addHelpText('after', examples('audit export --since 24h'))
    .action(async ({ since }: { since: Date }) => {
      let unchained = 0;
      for await (const page of exportAudit(await session.orm(), since)) {
        unchained += page.filter(({ chain }) => chain === null).length;
        const isRead = await out(page.map((value) => renderJson({ value })).join(''));
        if (!isRead) return;
      }
      if (unchained > 0)
        err(
          `${unchained} of these entries have no link yet. Workers chain them within seconds; a later export has it.\n`,
        );
    });
}

const COLUMNS = ['at', 'actor', 'action', 'subject', 'partner_name', 'external_ref', 'last4', 'detail'];

interface AuditFlags {
  since?: Date | null;
  subject?: string | null;
  actor?: string | null;
}
