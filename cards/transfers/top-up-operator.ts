import { type Command, Option } from 'commander';
import { z } from 'zod';
import { isId } from '../../domain/ids.ts';
import { WrongUsage } from '../../operator/errors.ts';
import { read, Text } from '../../operator/flag-values.ts';
import { listNewest, type Verbs, withLimit, workflowOf } from '../../operator/verbs.ts';
import { waitingFor } from '../waiting-operator.ts';
import { readTopUp, readTopUps, requireWhose } from './top-up-operator-reads.ts';

export function topUpNoun(topUp: Command, { session, verb, examples, err, resolveWaitMs }: Verbs): void {
  topUp.addHelpText('after', examples('topup list --card card_01k0…', 'topup show topup_01k0…'));

  const list = topUp
    .command('list')
    .description("a card's or a partner's top-ups, newest first, with the request that made each")
    .option('--card <id>', 'those of this card', read(Text(100)))
    .option('--partner <id>', "those of all of this partner's cards, in both modes", read(Text(100)))
    .option('--before <id>', 'only those older than this one: the next page', read(TopUpId));
  withLimit(list)
    .addHelpText(
      'after',
      examples('topup list --card card_01k0…', 'topup list --partner prt_01k0… --limit 20'),
    )
    .action(
      verb(async ({ before = null, limit, ...flags }: ListFlags) => {
        const orm = await session.orm();
        const whose = await requireWhose(orm, flags);
        return listNewest(err, {
          noun: 'topup',
          columns: COLUMNS,
          limit,
          isPaged: true,
          readNewest: (atMost) => readTopUps(orm, whose, { before, limit: atMost }),
        });
      }),
    );

  topUp
    .command('show')
    .description('a top-up, its amounts and its workflow')
    .argument('<id>', 'of the top-up')
    .addHelpText('after', examples('topup show topup_01k0…'))
    .action(
      verb(async (id: string) => {
        const value = await readTopUp(await session.orm(), id);
        return {
          value: {
            ...value,
            waiting:
              value.status === 'pending'
                ? await waitingFor(session, 'topup', value, session.config.topUpDeadlineMs)
                : null,
            ...(await workflowOf(session, value)),
          },
        };
      }),
    );

  topUp
    .command('resolve')
    .description('resolve a top-up that is past its deadline, once you know the outcome from the network')
    .argument('<id>', 'of the top-up')
    .addOption(
      new Option('--succeeded', 'the network loaded the card: the money is debited').conflicts('failed'),
    )
    .option('--failed', 'the network did not load the card: the money is released')
    .requiredOption('--reason <reason>', 'how you know, for the audit log', read(Text(500)))
    .addHelpText(
      'after',
      examples(
        'attention list',
        'topup resolve topup_01k0… --failed --reason "the network has no such load, ticket 4711"',
      ),
    )
    .action(
      verb(
        async (
          id: string,
          { succeeded, reason, failed }: { succeeded?: true; failed?: true; reason: string },
        ) => {
          if (!succeeded && !failed) throw new WrongUsage('give --succeeded or --failed');
          const { resolveTopUpByHand: resolveTopUp } = await import('../resolve-operator.ts');
          const outcome = succeeded ? 'succeeded' : 'failed';
          return { value: await resolveTopUp(session, id, { outcome, reason }, resolveWaitMs) };
        },
      ),
    );

  topUp
    .command('book')
    .description('book a top-up that failed by our record, and that the card network has carried out')
    .argument('<id>', 'of the top-up')
    .requiredOption('--reason <reason>', 'for the audit log', read(Text(500)))
    .addHelpText(
      'after',
      examples('topup book topup_01k0… --reason "the network shows the load, ticket 4711"'),
    )
    .action(
      verb(async (id: string, { reason }: { reason: string }) => {
        const { bookTopUpByHand } = await import('./book-operator.ts');
        return { value: await bookTopUpByHand(session, id, reason, resolveWaitMs) };
      }),
    );

  topUp
    .command('dismiss')
    .description(
      'take a contradiction of the card network off "attention list", once you have settled it there; it changes nothing else',
    )
    .argument('<id>', 'of the top-up')
    .requiredOption('--reason <reason>', 'how you settled it, for the audit log', read(Text(500)))
    .addHelpText(
      'after',
      examples('topup dismiss topup_01k0… --reason "the network took the load back, ticket 4711"'),
    )
    .action(
      verb(async (id: string, { reason }: { reason: string }) => {
        const { decideContradiction } = await import('../late-answers.ts');
        await decideContradiction(await session.operator(), {
          kind: 'topup',
          id,
          outcome: 'dismissed',
          reason,
        });
        return { value: { id, dismissed: true } };
      }),
    );
}

const TopUpId = z.string().refine((text) => isId('topup', text), 'must be the id of a top-up: topup_01k0…');
const COLUMNS =
  'created id card_id mode status amount total_debited failure_code request_id idempotency_key'.split(' ');

interface ListFlags {
  card?: string;
  partner?: string;
  before?: string | null;
  limit?: number;
}
