import type { Command } from 'commander';
import { z } from 'zod';
import { Refusal } from '../../commands/refusal.ts';
import { sendNetworkEvent } from '../../commands/settlement/simulate-transaction.ts';
import { AmountCents, NetworkId } from '../../domain/fields.ts';
import { TransactionType } from '../../domain/transaction.ts';
import { NO_MERCHANT } from '../../resources/transaction.ts';
import { read, Text, WholeNumber } from '../flag-values.ts';
import { readCard } from '../reads/cards.ts';
import type { Verbs } from '../verbs.ts';

interface Flags {
  card: string;
  type: TransactionType;
  amount: number;
  networkTransactionId: string;
  merchantName?: string;
  merchantCategoryCode?: string;
  forced: boolean;
}

const TypeName = z.enum(TransactionType.options, `must be one of ${TransactionType.options.join(', ')}`);
const CategoryCode = z.string().regex(/^\d{4}$/, 'must be four digits');
const EXAMPLE =
  'network-event send --card card_01k0… --type purchase --amount 1250 --network-transaction-id auth-4711';

export function networkEventNoun(networkEvent: Command, { session, verb, examples }: Verbs): void {
  networkEvent
    .addHelpText('after', examples(EXAMPLE))
    .command('send')
    .description('send a transaction; sending it again returns the same one')
    .requiredOption('--card <id>', 'id of the live card', read(Text(100)))
    .requiredOption('--type <type>', 'purchase, decline or refund', read(TypeName))
    .requiredOption('--amount <cents>', 'above zero', read(WholeNumber(AmountCents)))
    .requiredOption('--network-transaction-id <id>', "the network's id for it", read(NetworkId))
    .option('--merchant-name <name>', "the merchant's name", read(Text(255)))
    .option('--merchant-category-code <code>', 'four digits', read(CategoryCode))
    .option('--not-forced', 'let a purchase on a blocked card be declined')
    .addHelpText('after', examples(EXAMPLE, `${EXAMPLE} --not-forced`))
    .action(
      verb(async (flags: Flags & { notForced?: true }) => {
        const card = await readCard(await session.orm(), flags.card);
        if (card.mode === 'test') {
          throw new Refusal(
            `${card.id} is a test card, which has no network: use POST /v1/test/cards/${card.id}/simulate-transaction.`,
          );
        }
        if (session.config.cardNetwork !== 'simulated') {
          throw new Refusal(
            'CARD_NETWORK is not "simulated" here, and a real network sends its own transactions. If this installation ' +
              'runs on the simulated network, set CARD_NETWORK as the API has it.',
          );
        }
        const { transaction, replayed } = await sendNetworkEvent(await session.operator(), {
          ...{ partnerId: card.partner_id, mode: card.mode, cardId: card.id, simulated: false },
          ...{ type: flags.type, amountCents: flags.amount, forced: !flags.notForced },
          networkTransactionId: flags.networkTransactionId,
          merchant: {
            ...NO_MERCHANT,
            name: flags.merchantName ?? null,
            category_code: flags.merchantCategoryCode ?? null,
          },
        });
        return {
          value: transaction,
          ...(replayed && { note: 'It was already settled; nothing has changed.' }),
        };
      }),
    );
}
