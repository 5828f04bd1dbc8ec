import type { Command } from 'commander';
import { adjustBalance } from '../../commands/accounts/balance.ts';
import type { Mode } from '../../domain/mode.ts';
import { ModeName, read, SignedCents, Text } from '../flag-values.ts';
import { presentAmounts } from '../render.ts';
import type { Verbs } from '../verbs.ts';

interface Flags {
  mode: Mode;
  amount: number;
  reason: string;
  key?: string | null;
}

export function adjustVerb(partner: Command, { session, verb, examples }: Verbs): void {
  partner
    .command('adjust')
    .description('credit or debit the prepaid balance by hand; a debit cannot exceed the available balance')
    .argument('<id>', 'of the partner')
    .requiredOption('--mode <mode>', 'test or live', read(ModeName))
    .requiredOption('--amount <cents>', 'positive for a credit, negative for a debit', read(SignedCents))
    .requiredOption('--reason <reason>', 'why, for the audit log', read(Text(500)))
    .option(
      '--key <key>',
      'an idempotency key: with the same key, the adjustment is made only once',
      read(Text(255)),
    )
    .addHelpText(
      'after',
      examples(
        'partner adjust prt_01k0… --mode live --amount 250000 --reason "wire of 2 March" --key wire-0302',
        'partner adjust prt_01k0… --mode live --amount -500 --reason "goodwill of 1 March taken back"',
      ),
    )
    .action(
      verb(async (partnerId: string, { mode, amount, reason, key = null }: Flags) => {
        const adjustment = { partnerId, mode, amountCents: amount, reason, key };
        const { adjustmentId, createdAt, balance } = await adjustBalance(
          await session.operator(),
          adjustment,
        );
        return {
          value: {
            id: adjustmentId,
            object: 'balance_adjustment',
            partner_id: partnerId,
            mode,
            amount,
            reason,
            key,
            balance: presentAmounts(balance),
            created: createdAt.toISOString(),
          },
        };
      }),
    );
}
