import { argument, reason, verb } from '../operator/verbs.ts';
import { eraseCardholder } from './erase-cardholder.ts';

/** The noun `partner` has it, since an erasure is of all that an account has of a person. */
export const eraseCardholderVerb = verb({
  about: "blank a cardholder's names, e-mail address and metadata for good; money and ids stay",
  takes: { card: argument('id of the card'), reason: reason('why, for the audit log; without the names') },
  examples: ['card_01k0… --reason "request 4711"'],
  async run({ card: cardId, reason }, { session }) {
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
  },
});
