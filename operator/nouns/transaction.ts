import type { Command } from 'commander';
import { TRANSACTION_COLUMNS } from '../../db/columns.ts';
import type { Orm } from '../../db/orm.ts';
import { readStatement } from '../../db/sql.ts';
import { presentTransaction, type TransactionResource } from '../../resources/transaction.ts';
import { read, Text } from '../flag-values.ts';
import { readCard } from '../reads/cards.ts';
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

/** A transaction as the partner sees it, with its id at the network. */
interface OperatorTransaction extends TransactionResource {
  network_transaction_id: string;
}

async function readTransactions(orm: Orm, cardId: string): Promise<OperatorTransaction[]> {
  const rows = await newestOfCard(orm.em.fork(), { cardId });
  return rows.map((row) => ({
    ...presentTransaction(row),
    network_transaction_id: row.network_transaction_id,
  }));
}

const newestOfCard = readStatement((db, { cardId }: { cardId: string }) =>
  db
    .selectFrom('card_transaction')
    .select(TRANSACTION_COLUMNS)
    .where('card_id', '=', cardId)
    .orderBy('id', 'desc')
    .limit(100),
);
