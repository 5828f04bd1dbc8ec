import type { Command } from 'commander';
import { z } from 'zod';
import { requireWhose } from '../../cards/transfers/operator.ts';
import { AmountCents } from '../../domain/fields.ts';
import { isId } from '../../domain/ids.ts';
import { WHY_KEPT, type WhyKept } from '../../domain/network-transaction.ts';
import { TransactionType } from '../../domain/transaction.ts';
import { read, Since, Text, WholeNumber } from '../../operator/flag-values.ts';
import { listNewest, type Verbs, withLimit } from '../../operator/verbs.ts';
import { readTransaction, readTransactions } from '../../payments/transaction-operator-reads.ts';
import { notifyEvents } from '../../platform/db/notifications.ts';
import { readKeptTransaction, readKeptTransactions } from './kept-transaction-operator-reads.ts';
import { bookByHand, dismissMessage } from './settle-by-hand.ts';
import type { NetworkMessageStatus } from './tables.ts';

export function transactionNoun(transaction: Command, verbs: Verbs): void {
  transaction.addHelpText(
    'after',
    verbs.examples(
      'transaction list --card card_01k0…',
      'transaction show txn_01k0…',
      'transaction kept',
      'transaction show-kept nmsg_01k0…',
    ),
  );
  listVerb(transaction, verbs);
  showVerb(transaction, verbs);
  keptVerb(transaction, verbs);
  showKeptVerb(transaction, verbs);
  bookVerb(transaction, verbs);
  dismissVerb(transaction, verbs);
}

function listVerb(transaction: Command, { session, verb, examples, err }: Verbs): void {
  const list = transaction
    .command('list')
    .description("a card's or a partner's transactions, declines included, newest first")
    .option('--card <id>', 'those of this card', read(Text(100)))
    .option('--partner <id>', "those of all of this partner's cards, in both modes", read(Text(100)))
    .option('--since <time>', 'only those since then: 24h, 2026-11-20 or 2026-11-20T08:00:00Z', read(Since))
    .option('--before <id>', 'only those older than this one: the next page', read(TransactionId));
  withLimit(list)
    .addHelpText(
      'after',
      examples('transaction list --card card_01k0…', 'transaction list --partner prt_01k0… --since 24h'),
    )
    .action(
      verb(async ({ since = null, before = null, limit, ...flags }: ListFlags) => {
        const orm = await session.orm();
        const whose = await requireWhose(orm, flags);
        return listNewest(err, {
          noun: 'transaction',
          columns: COLUMNS,
          limit,
          isPaged: true,
          readNewest: (atMost) => readTransactions(orm, whose, { since, before, limit: atMost }),
        });
      }),
    );
}

function showVerb(transaction: Command, { session, verb, examples }: Verbs): void {
  transaction
    .command('show')
    .description("a transaction as its partner sees it, with the account and the network's id of it")
    .argument('<id>', 'of the transaction')
    .addHelpText('after', examples('transaction show txn_01k0…'))
    .action(verb(async (id: string) => ({ value: await readTransaction(await session.orm(), id) })));
}

const TransactionId = z
  .string()
  .refine((text) => isId('txn', text), 'must be the id of a transaction: txn_01k0…');
const COLUMNS =
  'created id card_id mode type amount merchant.name merchant.country decline_reason charged_to network_transaction_id'.split(
    ' ',
  );

interface ListFlags {
  card?: string;
  partner?: string;
  since?: Date | null;
  before?: string | null;
  limit?: number;
}

const STATUSES = ['waiting', 'booked', 'dismissed'] as const satisfies NetworkMessageStatus[];
const StatusName = z.enum(STATUSES, `must be one of ${STATUSES.join(', ')}`);
const ReasonName = z.enum(WHY_KEPT, `must be one of ${WHY_KEPT.join(', ')}`);

interface KeptFlags {
  status?: NetworkMessageStatus;
  reason?: WhyKept;
  limit?: number;
}

function keptVerb(transaction: Command, { session, verb, examples, err }: Verbs): void {
  const kept = transaction
    .command('kept')
    .description('transactions that the network reported and that could not be booked at once, newest first')
    .option('--status <status>', 'waiting (the default), booked or dismissed', read(StatusName))
    .option('--reason <reason>', 'only those that were kept for this reason', read(ReasonName));
  withLimit(kept)
    .addHelpText('after', examples('transaction kept', 'transaction kept --status dismissed'))
    .action(
      verb(async ({ status = 'waiting', reason, limit }: KeptFlags) => {
        const orm = await session.orm();
        const answer = await listNewest(err, {
          noun: 'transaction',
          columns: [
            'created',
            'id',
            'status',
            'reason',
            'network_transaction_id',
            'network_card_id',
            'card_id',
          ],
          limit,
          readNewest: (atMost) =>
            readKeptTransactions(orm, { status, reason: reason ?? null, limit: atMost }),
        });
        const isEmpty = (answer.value as unknown[]).length === 0;
        return {
          ...answer,
          note: isEmpty ? 'Nothing found.' : 'See all of one with "operator transaction show-kept ID".',
        };
      }),
    );
}

function showKeptVerb(transaction: Command, { session, verb, examples }: Verbs): void {
  transaction
    .command('show-kept')
    .description('what the network reported, as far as it is understood, and what became of it')
    .argument('<id>', 'of the kept transaction')
    .addHelpText('after', examples('transaction show-kept nmsg_01k0…'))
    .action(
      verb(async (id: string) => {
        const { orm, ring } = await session.withKeys();
        return { value: await readKeptTransaction(orm, ring, id) };
      }),
    );
}

interface BookFlags {
  card?: string;
  type?: TransactionType;
  amount?: number;
  reason: string;
}

const TypeName = z.enum(TransactionType.options, `must be one of ${TransactionType.options.join(', ')}`);

function bookVerb(transaction: Command, { session, verb, examples }: Verbs): void {
  transaction
    .command('book')
    .description('book a kept transaction, with what you give in place of what the network reported')
    .argument('<id>', 'of the kept transaction')
    .option('--card <id>', 'the card, if no live card has its card id at the network', read(Text(100)))
    .option('--type <type>', 'purchase, decline or refund', read(TypeName))
    .option('--amount <cents>', 'in US cents', read(WholeNumber(AmountCents)))
    .requiredOption('--reason <reason>', 'how you know, for the audit log', read(Text(500)))
    .addHelpText(
      'after',
      examples(
        'transaction book nmsg_01k0… --reason "two purchases under one id, the network says, ticket 4711"',
        'transaction book nmsg_01k0… --card card_01k0… --reason "the network issued it after all, ticket 4712"',
        'transaction book nmsg_01k0… --type purchase --amount 1250 --reason "EUR 11.60, ticket 4713"',
      ),
    )
    .action(
      verb(async (id: string, { card, type, amount, reason }: BookFlags) => {
        const operator = await session.withKeys();
        const value = await bookByHand(operator, id, { cardId: card, type, amountCents: amount, reason });
        await notifyEvents(operator.orm);
        return { value, note: `It is booked as ${value.id}.` };
      }),
    );
}

function dismissVerb(transaction: Command, { session, verb, examples }: Verbs): void {
  transaction
    .command('dismiss')
    .description('record that a kept transaction is not to be booked')
    .argument('<id>', 'of the kept transaction')
    .requiredOption('--reason <reason>', 'how you know, for the audit log', read(Text(500)))
    .addHelpText(
      'after',
      examples('transaction dismiss nmsg_01k0… --reason "not our card, the network says, ticket 4711"'),
    )
    .action(
      verb(async (id: string, { reason }: { reason: string }) => {
        const operator = await session.withKeys();
        await dismissMessage(operator, id, reason);
        return {
          value: await readKeptTransaction(operator.orm, operator.ring, id),
          note: 'It will not be booked, even if the network repeats it.',
        };
      }),
    );
}
