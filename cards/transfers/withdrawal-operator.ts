import { type Command, Option } from 'commander';
import { z } from 'zod';
import { isId } from '../../domain/ids.ts';
import { WrongUsage } from '../../operator/errors.ts';
import { read, Text } from '../../operator/flag-values.ts';
import { listNewest, type Verbs, withLimit, workflowOf } from '../../operator/verbs.ts';
import { waitingFor } from '../waiting-operator.ts';
import { requireWhose } from './top-up-operator-reads.ts';
import { readWithdrawal, readWithdrawals } from './withdrawal-operator-reads.ts';

export function withdrawalNoun(
  withdrawal: Command,
  { session, verb, examples, err, resolveWaitMs }: Verbs,
): void {
  withdrawal.addHelpText('after', examples('withdrawal list --card card_01k0…', 'withdrawal show wdr_01k0…'));

  const list = withdrawal
    .command('list')
    .description("a card's or a partner's withdrawals, newest first, with the request that made each")
    .option('--card <id>', 'those of this card', read(Text(100)))
    .option('--partner <id>', "those of all of this partner's cards, in both modes", read(Text(100)))
    .option('--before <id>', 'only those older than this one: the next page', read(WithdrawalId));
  withLimit(list)
    .addHelpText(
      'after',
      examples('withdrawal list --card card_01k0…', 'withdrawal list --partner prt_01k0… --limit 20'),
    )
    .action(
      verb(async ({ before = null, limit, ...flags }: ListFlags) => {
        const orm = await session.orm();
        const whose = await requireWhose(orm, flags);
        return listNewest(err, {
          noun: 'withdrawal',
          columns: COLUMNS,
          limit,
          isPaged: true,
          readNewest: (atMost) => readWithdrawals(orm, whose, { before, limit: atMost }),
        });
      }),
    );

  withdrawal
    .command('show')
    .description('a withdrawal, its amount and its workflow')
    .argument('<id>', 'of the withdrawal')
    .addHelpText('after', examples('withdrawal show wdr_01k0…'))
    .action(
      verb(async (id: string) => {
        const value = await readWithdrawal(await session.orm(), id);
        return {
          value: {
            ...value,
            waiting:
              value.status === 'pending'
                ? await waitingFor(session, 'withdrawal', value, session.config.withdrawalDeadlineMs)
                : null,
            ...(await workflowOf(session, value)),
          },
        };
      }),
    );

  withdrawal
    .command('resolve')
    .description('resolve a withdrawal that is past its deadline, once you know the outcome from the network')
    .argument('<id>', 'of the withdrawal')
    .addOption(
      new Option(
        '--succeeded',
        'the network took the money off the card: it is added to the balance',
      ).conflicts('failed'),
    )
    .option('--failed', 'the network did not take the money off the card: it is released there')
    .requiredOption('--reason <reason>', 'how you know, for the audit log', read(Text(500)))
    .addHelpText(
      'after',
      examples(
        'attention list',
        'withdrawal resolve wdr_01k0… --failed --reason "the network has no such withdrawal, ticket 4711"',
      ),
    )
    .action(
      verb(
        async (
          id: string,
          { succeeded, reason, failed }: { succeeded?: true; failed?: true; reason: string },
        ) => {
          if (!succeeded && !failed) throw new WrongUsage('give --succeeded or --failed');
          const { resolveWithdrawalByHand: resolveWithdrawal } = await import('../resolve-operator.ts');
          const outcome = succeeded ? 'succeeded' : 'failed';
          return { value: await resolveWithdrawal(session, id, { outcome, reason }, resolveWaitMs) };
        },
      ),
    );

  withdrawal
    .command('book')
    .description('book a withdrawal that failed by our record, and that the card network has carried out')
    .argument('<id>', 'of the withdrawal')
    .requiredOption('--reason <reason>', 'for the audit log', read(Text(500)))
    .addHelpText(
      'after',
      examples('withdrawal book wdr_01k0… --reason "the network shows the withdrawal, ticket 4711"'),
    )
    .action(
      verb(async (id: string, { reason }: { reason: string }) => {
        const { bookWithdrawalByHand } = await import('./book-operator.ts');
        return { value: await bookWithdrawalByHand(session, id, reason, resolveWaitMs) };
      }),
    );

  withdrawal
    .command('dismiss')
    .description(
      'take a contradiction of the card network off "attention list", once you have settled it there; it changes nothing else',
    )
    .argument('<id>', 'of the withdrawal')
    .requiredOption('--reason <reason>', 'how you settled it, for the audit log', read(Text(500)))
    .addHelpText(
      'after',
      examples('withdrawal dismiss wdr_01k0… --reason "the network gave the money back, ticket 4711"'),
    )
    .action(
      verb(async (id: string, { reason }: { reason: string }) => {
        const { decideContradiction } = await import('../late-answers.ts');
        await decideContradiction(await session.operator(), {
          kind: 'withdrawal',
          id,
          outcome: 'dismissed',
          reason,
        });
        return { value: { id, dismissed: true } };
      }),
    );
}

const WithdrawalId = z
  .string()
  .refine((text) => isId('wdr', text), 'must be the id of a withdrawal: wdr_01k0…');
const COLUMNS = 'created id card_id mode status amount failure_code request_id idempotency_key'.split(' ');

interface ListFlags {
  card?: string;
  partner?: string;
  before?: string | null;
  limit?: number;
}
