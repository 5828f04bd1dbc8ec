import { type Command, Option } from 'commander';
import { NetworkId } from '../../domain/fields.ts';
import { WrongUsage } from '../errors.ts';
import { read, Text } from '../flag-values.ts';
import { readCard } from '../reads/cards.ts';
import type { Verbs } from '../verbs.ts';

export function cardNoun(card: Command, { session, verb, examples, resolveWaitMs }: Verbs): void {
  card.addHelpText('after', examples('card show card_01k0…'));

  card
    .command('show')
    .description("a card, its balance and its workflow; not the cardholder's data")
    .argument('<id>', 'of the card')
    .addHelpText('after', examples('card show card_01k0…'))
    .action(
      verb(async (id: string) => {
        const value = await readCard(await session.orm(), id);
        return { value: { ...value, workflow_status: await session.workflowStatus(value.workflow_id) } };
      }),
    );

  card
    .command('resolve')
    .description(
      'resolve an issuance that is past its deadline, once you know the outcome from the network; or give an ' +
        'active card its id at the network',
    )
    .argument('<id>', 'of the card')
    .addOption(new Option('--issued', 'the network issued the card: it becomes active').conflicts('failed'))
    .option('--failed', 'the network did not issue the card: it fails and its money is released')
    .option(
      '--network-card-id <id>',
      "with --issued: the card's id at the network, if the network cannot be asked for it",
      read(NetworkId),
    )
    .requiredOption('--reason <reason>', 'how you know, for the audit log', read(Text(500)))
    .addHelpText(
      'after',
      examples(
        'attention list',
        'card resolve card_01k0… --failed --reason "the network has no such card, ticket 4711"',
        'card resolve card_01k0… --issued --network-card-id 4f1c… --reason "by telephone, ticket 4711"',
      ),
    )
    .action(
      verb(async (id: string, { issued, reason, failed, networkCardId }: ResolveFlags) => {
        if (!issued && !failed) throw new WrongUsage('give --issued or --failed');
        if (failed && networkCardId !== undefined) {
          throw new WrongUsage('--network-card-id goes with --issued: a failed card has no id');
        }
        const decision = {
          outcome: issued ? ('issued' as const) : ('failed' as const),
          ...(networkCardId !== undefined && { networkCardId }),
        };
        const { resolveCard } = await import('../resolve.ts');
        return { value: await resolveCard(session, id, { ...decision, reason }, resolveWaitMs) };
      }),
    );
}

interface ResolveFlags {
  issued?: true;
  failed?: true;
  networkCardId?: string;
  reason: string;
}
