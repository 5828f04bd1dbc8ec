import { type Command, Option } from 'commander';
import { WrongUsage } from '../errors.ts';
import { read, Text } from '../flag-values.ts';
import { readTopUp } from '../reads/topups.ts';
import { type Verbs, waitingFor } from '../verbs.ts';

export function topUpNoun(topUp: Command, { session, verb, examples, resolveWaitMs }: Verbs): void {
  topUp.addHelpText('after', examples('topup show topup_01k0…'));

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
                ? await waitingFor(session, value, session.config.topUpDeadlineMs)
                : null,
            workflow_status: await session.workflowStatus(value.workflow_id),
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
          const { resolveTopUp } = await import('../resolve.ts');
          const outcome = succeeded ? 'succeeded' : 'failed';
          return { value: await resolveTopUp(session, id, { outcome, reason }, resolveWaitMs) };
        },
      ),
    );
}
