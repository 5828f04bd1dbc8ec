import type { Command } from 'commander';
import { read, Text } from '../flag-values.ts';
import { readCard } from '../reads/read-card.ts';
import { readTransactions } from '../reads/read-transactions.ts';
import type { Verbs } from '../verbs.ts';

export function transactionNoun(transaction: Command, { session, verb, examples }: Verbs): void {
  transaction
    .addHelpText('after', examples('transaction list --card card_01k0…'))
    .command('list')
    .description("a card's newest 100 transactions, declines included, newest first")
    .requiredOption('--card <id>', 'of the card', read(Text(100)))
    .addHelpText('after', examples('transaction list --card card_01k0…'))
    .action(
      verb(async ({ card }: { card: string }) => {
        const orm = await session.orm();
        await readCard(orm, card);
        const items = await readTransactions(orm, card);
        return {
          value: items,
          columns: [
            'created',
            'id',
            'type',
            'amount',
            'decline_reason',
            'charged_to',
            'network_transaction_id',
          ],
          ...(items.length === 0 && { note: 'The card has no transactions.' }),
        };
      }),
    );
}
