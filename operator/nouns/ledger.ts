import type { Command } from 'commander';
import { checkAndRecord } from '../../commands/operations/ledger-checks.ts';
import type { Mode } from '../../domain/mode.ts';
import { readBalance } from '../../ledger/balances.ts';
import { ModeName, read } from '../flag-values.ts';
import { readPartner } from '../reads/partners.ts';
import { presentAmounts } from '../render.ts';
import type { Verbs } from '../verbs.ts';

export function ledgerNoun(ledger: Command, { session, verb, examples }: Verbs): void {
  ledger.addHelpText('after', examples('ledger check', 'ledger balance prt_01k0… --mode live'));

  ledger
    .command('check')
    .description(
      'check every invariant over the whole ledger; lists the violations and exits with 1 if there are any',
    )
    .addHelpText('after', examples('ledger check'))
    .action(
      verb(async () => {
        const orm = await session.orm();
        const violations = await checkAndRecord(orm, { reader: orm, nextAt: null });
        return {
          value: violations,
          columns: ['invariant', 'subject', 'message'],
          failed: violations.length > 0,
          note:
            violations.length === 0
              ? 'Every invariant holds.'
              : 'Do not change rows by hand: find the cause, then correct the balance with "operator partner adjust".',
        };
      }),
    );

  ledger
    .command('balance')
    .description("an account's prepaid balance, in cents")
    .argument('<partner>', 'id of the partner')
    .requiredOption('--mode <mode>', 'test or live', read(ModeName))
    .addHelpText('after', examples('ledger balance prt_01k0… --mode live'))
    .action(
      verb(async (partnerId: string, { mode }: { mode: Mode }) => {
        const orm = await session.orm();
        await readPartner(orm, partnerId);
        return { value: presentAmounts(await readBalance(orm.em.fork(), partnerId, mode)) };
      }),
    );
}
