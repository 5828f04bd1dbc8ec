import { readMakers } from '../accounts/request-reads.ts';
import { CardStatus, type StatusChangeOperation } from '../domain/card-status.ts';
import { NetworkId } from '../domain/fields.ts';
import { WrongUsage } from '../operator/errors.ts';
import { Text } from '../operator/flag-values.ts';
import {
  argument,
  flag,
  list,
  type Noun,
  oneOf,
  reason,
  show,
  toggle,
  verb,
  workflowOf,
} from '../operator/verbs.ts';
import type { Orm } from '../platform/db/orm.ts';
import { eraseCardholder } from './erase-cardholder.ts';
import { readCard, readCards } from './reads.ts';
import { readTransfers } from './transfers/reads.ts';
import { waitingFor } from './waiting-operator.ts';

interface Hold {
  created: string;
  id: string;
  held_amount: number;
  expires_at: string | null;
  merchant: { name: string | null };
}

/** Reads the authorizations that hold a card's balance, newest first. */
type ReadHolds = (
  orm: Orm,
  page: { cardId: string; status: 'pending'; before: null; limit: number },
) => Promise<Hold[]>;

const ID = argument('of the card');

export const cardNoun = (readHolds: ReadHolds): Noun => ({
  list: list({
    about: 'cards, newest first',
    takes: {
      partner: flag('<id>', 'only those of this partner', Text(100)),
      externalRef: flag('<ref>', 'only those with this external_ref', Text(255)),
      status: flag('<status>', 'only those with this status', oneOf(CardStatus.options)),
    },
    pages: ['card'],
    examples: [
      '--partner prt_01k0… --status active',
      '--external-ref order-4711',
      '--status funding_pending --before card_01k0…',
    ],
    columns: 'created id partner_name mode status external_ref funding last4 failure_code',
    read: readCards,
    note: 'See all of one with "operator card show ID".',
  }),

  show: show({
    about:
      "a card, its balance, what holds it, its newest top-ups and withdrawals and its workflow; not the cardholder's data",
    id: 'of the card',
    example: 'card_01k0…',
    async read(orm, id, { session, err }) {
      const card = await readCard(orm, id);
      const makers = await readMakers(orm, [id]);
      const page = { before: null, limit: MAX_SHOWN + 1 };
      const pending = await readHolds(orm, { ...page, cardId: id, status: 'pending' });
      const topUps = await readTransfers(orm, 'topup', { cardId: id }, page);
      const withdrawals = await readTransfers(orm, 'withdrawal', { cardId: id }, page);
      const newest = (found: readonly object[], what: string, command: string, fields: string) => {
        if (found.length > MAX_SHOWN)
          err(`It has more than ${MAX_SHOWN} ${what}: "operator ${command}" has all of them.\n`);
        return found.slice(0, MAX_SHOWN).map((one) => fieldsOf(one, fields));
      };
      const holds = pending.map((hold) => ({ ...hold, merchant: hold.merchant.name }));
      const isPending = card.status === 'funding_pending';
      return {
        ...card,
        request: makers.get(id) ?? null,
        pending_authorizations: newest(
          holds,
          'pending authorizations',
          `authorization list --card ${id} --status pending`,
          'created id held_amount expires_at merchant',
        ),
        topups: newest(
          topUps,
          'top-ups',
          `topup list --card ${id}`,
          'created id status amount total_debited failure_code request_id idempotency_key',
        ),
        withdrawals: newest(
          withdrawals,
          'withdrawals',
          `withdrawal list --card ${id}`,
          'created id status amount failure_code request_id idempotency_key',
        ),
        waiting: isPending ? await waitingFor(orm, 'card', card, session.config.issuanceDeadlineMs) : null,
        ...(await workflowOf(session, card)),
      };
    },
  }),

  resolve: verb({
    about:
      'resolve an issuance that is past its deadline ("attention list" has them), once you know the outcome from the network; ' +
      'or give an active card its id at the network',
    takes: {
      id: ID,
      issued: toggle('the network issued the card: it becomes active', 'failed'),
      failed: toggle('the network did not issue the card: it fails and its money is released'),
      networkCardId: flag(
        '<id>',
        "with --issued: the card's id at the network, if the network cannot be asked for it",
        NetworkId,
      ),
      reason: reason('how you know, for the audit log'),
    },
    examples: [
      'card_01k0… --failed --reason "the network has no such card, ticket 4711"',
      'card_01k0… --issued --network-card-id 4f1c… --reason "by telephone, ticket 4711"',
    ],
    async run({ id, issued, failed, networkCardId, reason }, { session, resolveWaitMs }) {
      if (!issued && !failed) throw new WrongUsage('give --issued or --failed');
      if (failed && networkCardId !== null)
        throw new WrongUsage('--network-card-id goes with --issued: a failed card has no id');
      const outcome: 'issued' | 'failed' = issued ? 'issued' : 'failed';
      const decision = { outcome, networkCardId: networkCardId ?? undefined, reason };
      const { resolveCard } = await import('./resolve-operator.ts');
      return { value: await resolveCard(session, id, decision, resolveWaitMs) };
    },
  }),

  freeze: changeStatus('freeze_card', 'freeze an active card, as the partner could: authorizations decline'),
  unfreeze: changeStatus('unfreeze_card', 'unfreeze a frozen card, as the partner could'),
  block: changeStatus(
    'block_card',
    'block a card for ever, as the partner could: its balance goes back to the prepaid balance',
  ),

  dismiss: verb({
    about:
      'take a contradiction of the card network off "attention list", once you have settled it there; it changes nothing else',
    takes: { id: ID, reason: reason('how you settled it, for the audit log') },
    examples: ['card_01k0… --reason "the network closed the card, ticket 4711"'],
    async run({ id, reason }, { session }) {
      const { decideContradiction } = await import('./late-answers.ts');
      const decision = { kind: 'card', id, outcome: 'dismissed', reason } as const;
      await decideContradiction(await session.operator(), decision);
      return { value: { id, dismissed: true } };
    },
  }),
});

function changeStatus(operation: StatusChangeOperation, about: string) {
  return verb({
    about,
    takes: { id: ID, reason: reason('why, for the audit log') },
    examples: ['card_01k0… --reason "key leaked, ticket 4711"'],
    async run({ id: cardId, reason }, { session, resolveWaitMs }) {
      const { changeStatusByHand } = await import('./change-status-operator.ts');
      return { value: await changeStatusByHand(session, { cardId, operation, reason }, resolveWaitMs) };
    },
  });
}

/** How many of each kind `card show` has. */
const MAX_SHOWN = 20;

const fieldsOf = (one: object, fields: string) =>
  Object.fromEntries(fields.split(' ').map((name) => [name, one[name as keyof typeof one]]));

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
        'until they expire: see docs/operator.md, "Erasing a cardholder".',
    };
  },
});
