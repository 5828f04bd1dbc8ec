import type { Command } from 'commander';
import { z } from 'zod';
import { readPartner } from '../accounts/reads.ts';
import { isId } from '../domain/ids.ts';
import type { Mode } from '../domain/mode.ts';
import { Refusal } from '../domain/refusal.ts';
import { readAccountMonth } from '../ledger/account-month.ts';
import { readBalance } from '../ledger/balances.ts';
import { ModeName, read, Since, Text } from '../operator/flag-values.ts';
import { presentAmounts } from '../operator/render.ts';
import { listNewest, type Verbs, withLimit } from '../operator/verbs.ts';
import { readBalanceTransactions, requireOwnCard } from './balance-transaction-operator-reads.ts';
import { checkAndRecord } from './check-ledger.ts';
import { presentStatement } from './statement-resource.ts';

export function ledgerNoun(ledger: Command, { session, verb, examples, err }: Verbs): void {
  ledger.addHelpText(
    'after',
    examples(
      'ledger check',
      'ledger balance prt_01k0… --mode live',
      'ledger transactions prt_01k0… --mode live --since 7d',
    ),
  );

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

  ledger
    .command('statement')
    .description(
      "a month of an account's balance and cards, as its partner sees it; the current month up to now",
    )
    .argument('<partner>', 'id of the partner')
    .argument('<month>', 'as 2026-10, in UTC', read(Text(7)))
    .requiredOption('--mode <mode>', 'test or live', read(ModeName))
    .addHelpText('after', examples('ledger statement prt_01k0… 2026-10 --mode live'))
    .action(
      verb(async (partnerId: string, month: string, { mode }: { mode: Mode }) => {
        const orm = await session.orm();
        await readPartner(orm, partnerId);
        const found = await readAccountMonth(orm.em.fork(), { partnerId, mode }, month);
        if (found === null) throw new Refusal(`${month} is no month that has begun: write it as 2026-10.`);
        return { value: presentStatement(month, mode, found) };
      }),
    );

  const transactions = ledger
    .command('transactions')
    .description(
      "every change to an account's prepaid balance, newest first, with what it was for and the request that caused it",
    )
    .argument('<partner>', 'id of the partner')
    .requiredOption('--mode <mode>', 'test or live', read(ModeName))
    .option('--since <time>', 'only those since then', read(Since))
    .option('--card <id>', 'only those of this card: issuance, top-ups, fees, its release', read(Text(100)))
    .option('--before <id>', 'only those older than this one: the next page', read(BalanceTransactionId));
  withLimit(transactions)
    .addHelpText(
      'after',
      examples(
        'ledger transactions prt_01k0… --mode live --since 24h',
        'ledger transactions prt_01k0… --mode live --card card_01k0…',
      ),
    )
    .action(
      verb(
        async (partnerId: string, { mode, since = null, card = null, before = null, limit }: ListFlags) => {
          const orm = await session.orm();
          await readPartner(orm, partnerId);
          if (card !== null) await requireOwnCard(orm, { partnerId, mode }, card);
          const list = await listNewest(err, {
            noun: 'ledger',
            columns: COLUMNS,
            limit,
            isPaged: true,
            readNewest: (atMost) =>
              readBalanceTransactions(
                orm,
                { partnerId, mode },
                { since, cardId: card, before, limit: atMost },
              ),
          });
          if ((list.value as object[]).length === 0) return list;
          return {
            ...list,
            note: 'What is on hold is not listed until it is debited. See who asked for one with "operator request find --request-id ID".',
          };
        },
      ),
    );
}

const BalanceTransactionId = z
  .string()
  .refine((text) => isId('btx', text), 'must be the id of a balance transaction: btx_01k0…');

const COLUMNS = 'created id type amount balance_after source request_id idempotency_key'.split(' ');

interface ListFlags {
  mode: Mode;
  since?: Date | null;
  card?: string | null;
  before?: string | null;
  limit?: number;
}
