import type { Command } from 'commander';
import { read, Text } from '../operator/flag-values.ts';
import type { Verbs } from '../operator/verbs.ts';
import { eraseCardholder } from './erase-cardholder.ts';

/** The noun `partner` has it, since an erasure is of all that an account has of a person. */
export function eraseCardholderVerb(partner: Command, { session, verb, examples }: Verbs): void {
  partner
    .command('erase-cardholder')
    .description("blank a cardholder's names, e-mail address and metadata for good; money and ids stay")
    .argument('<card>', 'id of the card')
    .requiredOption('--reason <reason>', 'why, for the audit log; without the names', read(Text(500)))
    .addHelpText('after', examples('partner erase-cardholder card_01k0… --reason "request 4711"'))
    .action(
      verb(async (cardId: string, { reason }: { reason: string }) => {
        const erased = await eraseCardholder(await session.withKeys(), cardId, reason);
        return {
          value: {
            id: cardId,
            object: 'cardholder_erasure',
            partner_id: erased.partnerId,
            mode: erased.mode,
            responses_blanked: erased.responsesBlanked,
            events_blanked: erased.eventsBlanked,
            events_sent_before: erased.eventsSentBefore,
          },
          note:
            'The partner keeps what it was sent before, the card network keeps what it has, and backups keep what they have ' +
            'until they expire: see docs/operating.md, "Erasing a cardholder".',
        };
      }),
    );
}
