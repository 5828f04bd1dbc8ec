import { sql } from 'kysely';
import { requireOneOf, requireWhose } from '../../cards/transfers/operator.ts';
import { AmountCents, NetworkId } from '../../domain/fields.ts';
import { Since, Text, WholeNumber } from '../../operator/flag-values.ts';
import {
  argument,
  flag,
  list,
  type Noun,
  needed,
  oneOf,
  reason,
  show,
  type Tools,
  verb,
} from '../../operator/verbs.ts';
import { readTransaction, readTransactions } from '../../payments/transaction-operator-reads.ts';
import { notifyEvents } from '../../platform/db/notifications.ts';
import type { Orm } from '../../platform/db/orm.ts';
import { readStatement } from '../../platform/db/sql.ts';
import { UNDECIDED } from './attention.ts';
import { approveElement, type Decided, decideElement, rejectElement } from './decide-element.ts';

const ELEMENT = argument("the network's id of the element", NetworkId);

export const transactionNoun: Noun = {
  list: list({
    about: "a card's or a partner's transactions, declines included, newest first",
    takes: {
      card: flag('<id>', 'those of this card', Text(100)),
      partner: flag('<id>', "those of all of this partner's cards, in both modes", Text(100)),
      since: flag('<time>', 'only those since then: 24h, 2026-11-20 or 2026-11-20T08:00:00Z', Since),
    },
    pages: ['txn'],
    examples: ['--card card_01k0…', '--partner prt_01k0… --since 24h'],
    columns:
      'created id card_id mode type amount merchant.name merchant.country decline_reason charged_to network_transaction_id',
    refuse: requireOneOf,
    read: async (orm, { since, before, limit, ...flags }) =>
      readTransactions(orm, await requireWhose(orm, flags), { since, before, limit }),
    note: 'See all of one with "operator transaction show ID".',
  }),

  show: show({
    about: "a transaction as its partner sees it, with the account and the network's id of it",
    id: 'of the transaction',
    example: 'txn_01k0…',
    read: readTransaction,
  }),

  undecided: list({
    about: 'elements of payments at the network that a person has to decide, the oldest first',
    examples: [''],
    columns: 'since id why what amount currency payment_id network_card_id partner_id requested_by',
    read: (orm, { limit }) => readUndecided(orm, limit),
    note: 'Decide one with "operator transaction book ID" or "operator transaction dismiss ID".',
    none: 'Nothing is to be decided.',
  }),

  book: verb({
    about: 'say what an element of a payment means, and book it',
    takes: {
      element: ELEMENT,
      card: flag('<id>', 'the card, if no live card has its card id at the network', Text(100)),
      type: needed('<type>', 'purchase or refund', oneOf(['purchase', 'refund'])),
      amount: needed('<cents>', 'in US cents', WholeNumber(AmountCents)),
      reason: reason('how you know, for the audit log'),
    },
    examples: [
      '8b1e… --type purchase --amount 1250 --reason "EUR 11.60, ticket 4713"',
      '8b1e… --card card_01k0… --type purchase --amount 1250 --reason "the network issued it after all, ticket 4712"',
    ],
    async run({ element, card, type, amount, reason }, tools) {
      const made = { means: type, amountCents: amount };
      return present(
        tools,
        element,
        await decideElement(await context(tools), { elementId: element, cardId: card, made, reason }),
      );
    },
  }),

  approve: verb({
    about: 'approve what another operator has said of an element, which books it',
    takes: { element: ELEMENT },
    examples: ['8b1e…'],
    run: async ({ element }, tools) =>
      present(tools, element, await approveElement(await context(tools), element)),
  }),

  reject: verb({
    about: 'reject what an operator has said of an element: it is to be decided again',
    takes: { element: ELEMENT, reason: reason('why, for the audit log') },
    examples: ['8b1e… --reason "the network says USD 12.50, ticket 4713"'],
    async run({ element, reason }, { session }) {
      await rejectElement(await session.operator(), element, reason);
      return { value: { id: element, status: 'undecided' } };
    },
  }),

  dismiss: verb({
    about: 'record that an element of a payment means nothing: nothing was bought',
    takes: { element: ELEMENT, reason: reason('how you know, for the audit log') },
    examples: ['8b1e… --reason "not our card, the network says, ticket 4711"'],
    async run({ element, reason }, tools) {
      const decision = { elementId: element, cardId: null, made: { means: 'nothing' }, reason } as const;
      return present(tools, element, await decideElement(await context(tools), decision));
    },
  }),
};

async function context({ session }: Tools) {
  const { adjustmentApprovalCents: approvalCents, authorizationTtlMs } = session.config;
  return { ...(await session.operator()), approvalCents, authorizationTtlMs };
}

async function present({ session }: Tools, element: string, decided: Decided) {
  if (decided.outcome === 'waits') {
    return {
      value: { id: element, status: 'waiting_for_approval' },
      note: `Nothing is booked yet: another operator has to run "operator transaction approve ${element}".`,
    };
  }
  await notifyEvents(await session.orm());
  if (decided.outcome === 'dismissed') {
    return {
      value: { id: element, status: 'dismissed' },
      note: 'It will not be booked, in whatever words the network tells it again.',
    };
  }
  const { transaction } = decided;
  return { value: transaction, note: `It is booked as ${transaction.id}.` };
}

interface Undecided {
  id: string;
  since: string;
}

async function readUndecided(orm: Orm, limit: number): Promise<Undecided[]> {
  const rows = await oldest(orm.em.fork(), { limit });
  return rows.map((row) => ({ ...row, since: new Date(row.since).toISOString() }));
}

const oldest = readStatement(
  (_, { limit }: { limit: number }) => sql<Undecided>`
    SELECT * FROM (${UNDECIDED}) undecided ORDER BY since, id LIMIT ${limit}`,
  { acrossTenants: 'operator' },
);
