import { type Command, Option } from 'commander';
import { z } from 'zod';
import { isId } from '../../domain/ids.ts';
import { TRANSFERS, type TransferDirection, transferDeadlineMs } from '../../domain/transfer.ts';
import { WrongUsage } from '../../operator/errors.ts';
import { read, Text } from '../../operator/flag-values.ts';
import { listNewest, type Verbs, withLimit, workflowOf } from '../../operator/verbs.ts';
import { waitingFor } from '../waiting-operator.ts';
import { readTransfer, readTransfers, requireWhose } from './operator-reads.ts';

/** What the help of each direction's noun says. */
const WORDS = {
  topup: {
    amounts: 'amounts',
    succeeded: 'the network loaded the card: the money is debited',
    failed: 'the network did not load the card: the money is released',
    movement: 'load',
    settled: 'the network took the load back, ticket 4711',
    columns: ['amount', 'total_debited'],
  },
  withdrawal: {
    amounts: 'amount',
    succeeded: 'the network took the money off the card: it is added to the balance',
    failed: 'the network did not take the money off the card: it is released there',
    movement: 'withdrawal',
    settled: 'the network gave the money back, ticket 4711',
    columns: ['amount'],
  },
} as const;

export const topUpNoun = (noun: Command, verbs: Verbs): void => transferNoun('topup', noun, verbs);
export const withdrawalNoun = (noun: Command, verbs: Verbs): void => transferNoun('withdrawal', noun, verbs);

function transferNoun(direction: TransferDirection, noun: Command, verbs: Verbs): void {
  const { session, verb, examples, err, resolveWaitMs } = verbs;
  const { idPrefix, noun: name } = TRANSFERS[direction];
  const words = WORDS[direction];
  const example = `${idPrefix}_01k0…`;
  const ofOne = `of the ${name}`;
  noun.addHelpText('after', examples(`${direction} list --card card_01k0…`, `${direction} show ${example}`));

  const TransferId = z
    .string()
    .refine((text) => isId(idPrefix, text), `must be the id of a ${name}: ${example}`);
  const list = noun
    .command('list')
    .description(`a card's or a partner's ${name}s, newest first, with the request that made each`)
    .option('--card <id>', 'those of this card', read(Text(100)))
    .option('--partner <id>', "those of all of this partner's cards, in both modes", read(Text(100)))
    .option('--before <id>', 'only those older than this one: the next page', read(TransferId));
  withLimit(list)
    .addHelpText(
      'after',
      examples(`${direction} list --card card_01k0…`, `${direction} list --partner prt_01k0… --limit 20`),
    )
    .action(
      verb(async ({ before = null, limit, ...flags }: ListFlags) => {
        const orm = await session.orm();
        const whose = await requireWhose(orm, flags);
        return listNewest(err, {
          noun: direction,
          columns: [
            ...['created', 'id', 'card_id', 'mode', 'status'],
            ...words.columns,
            ...['failure_code', 'request_id', 'idempotency_key'],
          ],
          limit,
          isPaged: true,
          readNewest: (atMost) => readTransfers(orm, direction, whose, { before, limit: atMost }),
        });
      }),
    );

  noun
    .command('show')
    .description(`a ${name}, its ${words.amounts} and its workflow`)
    .argument('<id>', ofOne)
    .addHelpText('after', examples(`${direction} show ${example}`))
    .action(
      verb(async (id: string) => {
        const value = await readTransfer(await session.orm(), direction, id);
        const deadlineMs = transferDeadlineMs(session.config, direction);
        const waiting =
          value.status === 'pending' ? await waitingFor(session, 'card_transfer', value, deadlineMs) : null;
        return { value: { ...value, waiting, ...(await workflowOf(session, value)) } };
      }),
    );

  noun
    .command('resolve')
    .description(`resolve a ${name} that is past its deadline, once you know the outcome from the network`)
    .argument('<id>', ofOne)
    .addOption(new Option('--succeeded', words.succeeded).conflicts('failed'))
    .option('--failed', words.failed)
    .requiredOption('--reason <reason>', 'how you know, for the audit log', read(Text(500)))
    .addHelpText(
      'after',
      examples(
        'attention list',
        `${direction} resolve ${example} --failed --reason "the network has no such ${words.movement}, ticket 4711"`,
      ),
    )
    .action(
      verb(async (id: string, { succeeded, reason, failed }: ResolveFlags) => {
        if (!succeeded && !failed) throw new WrongUsage('give --succeeded or --failed');
        const { resolveTransfer } = await import('../resolve-operator.ts');
        const outcome = succeeded ? 'succeeded' : 'failed';
        const decision = { direction, id, outcome, reason } as const;
        return { value: await resolveTransfer(session, decision, resolveWaitMs) };
      }),
    );

  noun
    .command('book')
    .description(`book a ${name} that failed by our record, and that the card network has carried out`)
    .argument('<id>', ofOne)
    .requiredOption('--reason <reason>', 'for the audit log', read(Text(500)))
    .addHelpText(
      'after',
      examples(
        `${direction} book ${example} --reason "the network shows the ${words.movement}, ticket 4711"`,
      ),
    )
    .action(
      verb(async (id: string, { reason }: { reason: string }) => {
        const { bookByHand } = await import('./book-operator.ts');
        return { value: await bookByHand(session, { direction, id, reason }, resolveWaitMs) };
      }),
    );

  noun
    .command('dismiss')
    .description(
      'take a contradiction of the card network off "attention list", once you have settled it there; it changes nothing else',
    )
    .argument('<id>', ofOne)
    .requiredOption('--reason <reason>', 'how you settled it, for the audit log', read(Text(500)))
    .addHelpText('after', examples(`${direction} dismiss ${example} --reason "${words.settled}"`))
    .action(
      verb(async (id: string, { reason }: { reason: string }) => {
        const { decideContradiction } = await import('../late-decisions.ts');
        const decision = { kind: direction, id, outcome: 'dismissed', reason } as const;
        await decideContradiction(await session.operator(), decision);
        return { value: { id, dismissed: true } };
      }),
    );
}

interface ListFlags {
  card?: string;
  partner?: string;
  before?: string | null;
  limit?: number;
}

interface ResolveFlags {
  succeeded?: true;
  failed?: true;
  reason: string;
}
