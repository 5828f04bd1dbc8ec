import { readPartner } from '../../accounts/reads.ts';
import { TRANSFERS, type TransferDirection, transferDeadlineMs } from '../../domain/transfer.ts';
import { WrongUsage } from '../../operator/errors.ts';
import { Text } from '../../operator/flag-values.ts';
import {
  argument,
  flag,
  list,
  type Noun,
  reason,
  show,
  toggle,
  verb,
  workflowOf,
} from '../../operator/verbs.ts';
import type { Orm } from '../../platform/db/orm.ts';
import { readCard } from '../reads.ts';
import { waitingFor } from '../waiting-operator.ts';
import { readTransfer, readTransfers, type Whose } from './reads.ts';

/** What the help of each direction says. */
const WORDS = {
  topup: {
    amounts: 'amounts',
    columns: 'amount total_debited',
    succeeded: 'the network loaded the card: the money is debited',
    failed: 'the network did not load the card: the money is released',
    movement: 'load',
    settled: 'the network took the load back, ticket 4711',
  },
  withdrawal: {
    amounts: 'amount',
    columns: 'amount',
    succeeded: 'the network took the money off the card: it is added to the balance',
    failed: 'the network did not take the money off the card: it is released there',
    movement: 'withdrawal',
    settled: 'the network gave the money back, ticket 4711',
  },
} as const;

function transferNoun(direction: TransferDirection): Noun {
  const { idPrefix, noun } = TRANSFERS[direction];
  const words = WORDS[direction];
  const example = `${idPrefix}_01k0…`;
  const id = argument(`of the ${noun}`);
  return {
    list: list({
      about: `a card's or a partner's ${noun}s, newest first, with the request that made each`,
      takes: {
        card: flag('<id>', 'those of this card', Text(100)),
        partner: flag('<id>', "those of all of this partner's cards, in both modes", Text(100)),
      },
      pages: [idPrefix],
      examples: ['--card card_01k0…', '--partner prt_01k0… --limit 20'],
      columns: `created id card_id mode status ${words.columns} failure_code request_id idempotency_key`,
      refuse: requireOneOf,
      read: async (orm, { before, limit, ...flags }) =>
        readTransfers(orm, direction, await requireWhose(orm, flags), { before, limit }),
      note: `See all of one with "operator ${direction} show ID".`,
    }),

    show: show({
      about: `a ${noun}, its ${words.amounts} and its workflow`,
      id: `of the ${noun}`,
      example,
      async read(orm, transferId, { session }) {
        const transfer = await readTransfer(orm, direction, transferId);
        const deadlineMs = transferDeadlineMs(session.config, direction);
        const isPending = transfer.status === 'pending';
        return {
          ...transfer,
          waiting: isPending ? await waitingFor(orm, 'card_transfer', transfer, deadlineMs) : null,
          ...(await workflowOf(session, transfer)),
        };
      },
    }),

    resolve: verb({
      about: `resolve a ${noun} that is past its deadline ("attention list" has them), once you know the outcome from the network`,
      takes: {
        id,
        succeeded: toggle(words.succeeded, 'failed'),
        failed: toggle(words.failed),
        reason: reason('how you know, for the audit log'),
      },
      examples: [`${example} --failed --reason "the network has no such ${words.movement}, ticket 4711"`],
      async run({ id, succeeded, failed, reason }, { session, resolveWaitMs }) {
        if (!succeeded && !failed) throw new WrongUsage('give --succeeded or --failed');
        const { resolveTransfer } = await import('../resolve-operator.ts');
        const outcome = succeeded ? 'succeeded' : 'failed';
        const decision = { direction, id, outcome, reason } as const;
        return { value: await resolveTransfer(session, decision, resolveWaitMs) };
      },
    }),

    book: verb({
      about: `book a ${noun} that failed by our record, and that the card network has carried out`,
      takes: { id, reason: reason('for the audit log') },
      examples: [`${example} --reason "the network shows the ${words.movement}, ticket 4711"`],
      async run({ id, reason }, { session, resolveWaitMs }) {
        const { bookByHand } = await import('./book-operator.ts');
        return { value: await bookByHand(session, { direction, id, reason }, resolveWaitMs) };
      },
    }),

    dismiss: verb({
      about:
        'take a contradiction of the card network off "attention list", once you have settled it there; it changes nothing else',
      takes: { id, reason: reason('how you settled it, for the audit log') },
      examples: [`${example} --reason "${words.settled}"`],
      async run({ id, reason }, { session }) {
        const { decideContradiction } = await import('../late-answers.ts');
        const decision = { kind: direction, id, outcome: 'dismissed', reason } as const;
        await decideContradiction(await session.operator(), decision);
        return { value: { id, dismissed: true } };
      },
    }),
  };
}

export const topUpNoun = transferNoun('topup');
export const withdrawalNoun = transferNoun('withdrawal');

interface WhoseFlags {
  card?: string | null;
  partner?: string | null;
}

/** @throws WrongUsage */
export function requireOneOf({ card, partner }: WhoseFlags): void {
  if ((card == null) === (partner == null)) throw new WrongUsage('give one of --card and --partner');
}

/**
 * Whose transfers or transactions to list, by the flags --card and --partner.
 * @throws WrongUsage unless exactly one is given; Refusal if there is no such card or partner
 */
export async function requireWhose(orm: Orm, flags: WhoseFlags): Promise<Whose> {
  requireOneOf(flags);
  const { card, partner } = flags;
  if (card != null) return { cardId: (await readCard(orm, card)).id };
  return { partnerId: (await readPartner(orm, partner ?? '')).id };
}
