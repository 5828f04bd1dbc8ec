import { z } from 'zod';
import { Since, Text } from '../operator/flag-values.ts';
import { renderJson } from '../operator/render.ts';
import { flag, list, type Noun, needed, verb } from '../operator/verbs.ts';
import { exportAudit, verifyAudit } from './audit-chain-operator.ts';
import { readAudit } from './audit-reads.ts';

const SINCE = 'entries since then: 24h, 2026-11-20 or 2026-11-20T08:00:00Z';

/** The number and the hash of a link of the chain. */
const Head = z
  .string()
  .regex(
    /^[1-9]\d{0,17}:[0-9a-f]{64}$/,
    'must be the number and the hash that "operator audit verify" printed as head',
  )
  .transform((text) => {
    const [seq = '', hash = ''] = text.split(':');
    return { seq, hash };
  });

export const auditNoun: Noun = {
  list: list({
    about: 'changes by operators, and what partners did with their keys and revealed, newest first',
    takes: {
      subject: flag('<id>', 'only entries about this: a card, a partner, an event, …', Text(200)),
      actor: flag(
        '<name>',
        'only entries by this operator (OPERATOR, or user@host); or what this partner did, or this partner/key',
        Text(300),
      ),
      since: flag('<time>', `only ${SINCE}`, Since),
    },
    examples: [
      '--since 24h',
      '--subject card_01k0…',
      '--actor ada@ops-1 --since 2026-11-20T08:00:00Z --json',
    ],
    columns: 'at actor action subject partner_name external_ref last4 detail',
    none: 'Nothing that matches was changed or revealed.',
    read: readAudit,
  }),

  verify: verb({
    about:
      'check that no entry was changed, removed or inserted since workers chained it; exits with 1 if one was',
    takes: {
      since: flag('<time>', 'older entries may be gone, because their year was dropped', Since),
      head: flag(
        '<seq:hash>',
        'the chain must contain this link, the head that an earlier run printed',
        Head,
      ),
    },
    examples: ['', '--head 4711:9f2c…'],
    async run({ since, head }, { session }) {
      const value = await verifyAudit(await session.orm(), { since, anchor: head });
      return { value, failed: !value.whole, note: describeVerification(value) };
    },
  }),

  export: verb({
    about: 'print entries as JSON lines, in the order in which they were chained',
    takes: { since: needed('<time>', SINCE, Since) },
    examples: ['--since 24h'],
    async run({ since }, { session, out, err }) {
      let unchained = 0;
      for await (const page of exportAudit(await session.orm(), since)) {
        unchained += page.filter(({ chain }) => chain === null).length;
        const isRead = await out(page.map((value) => renderJson({ value })).join(''));
        if (!isRead) return null;
      }
      if (unchained > 0)
        err(
          `${unchained} of these entries have no link yet. Workers chain them within seconds; a later export has it.\n`,
        );
      return null;
    },
  }),
};

function describeVerification({ whole, waiting }: { whole: boolean; waiting: number }): string {
  if (!whole)
    return 'Somebody changed the log around the service. Keep the database as it is, and compare with what "operator audit export" sent elsewhere.';
  return waiting === 0
    ? 'Every entry is as it was recorded. Keep the head elsewhere: with --head, a later run shows whether the chain was cut off or made anew.'
    : 'Every chained entry is as it was recorded. Workers chain waiting ones within seconds: if waiting_since is older, check that one is running.';
}
