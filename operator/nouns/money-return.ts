import type { Command } from 'commander';
import { sql } from 'kysely';
import { z } from 'zod';
import { dismissReturn, retryReturn } from '../../commands/money-returns/money-returns.ts';
import { unknownId } from '../../commands/refusal.ts';
import type { MoneyReturnStatus } from '../../db/entities/cards.ts';
import type { Orm } from '../../db/orm.ts';
import { readStatement } from '../../db/sql.ts';
import { isId } from '../../domain/ids.ts';
import { read, Text } from '../flag-values.ts';
import { listNewest, type Verbs, withLimit } from '../verbs.ts';

const STATUSES = ['pending', 'refused', 'succeeded', 'dismissed'] as const satisfies MoneyReturnStatus[];
const StatusName = z.enum(STATUSES, `must be one of ${STATUSES.join(', ')}`);
const ReturnId = z.string().refine((text) => isId('ret', text), 'must be the id of a return: ret_01k0…');
const COLUMNS = 'created id card_id amount status reason attempts token'.split(' ');

interface ListFlags {
  status?: MoneyReturnStatus;
  before?: string | null;
  limit?: number;
}

export function moneyReturnNoun(moneyReturn: Command, { session, verb, examples, err }: Verbs): void {
  moneyReturn.addHelpText('after', examples('money-return list', 'money-return list --status refused'));

  const list = moneyReturn
    .command('list')
    .description("what the card network has to take back from blocked cards' accounts, newest first")
    .option('--status <status>', 'pending (the default), refused, succeeded or dismissed', read(StatusName))
    .option('--before <id>', 'only those older than this one: the next page', read(ReturnId));
  withLimit(list)
    .addHelpText('after', examples('money-return list --status refused'))
    .action(
      verb(async ({ status = 'pending', before = null, limit }: ListFlags) => {
        const orm = await session.orm();
        const listed = await listNewest(err, {
          noun: 'return',
          columns: COLUMNS,
          limit,
          isPaged: true,
          readNewest: (atMost) => readReturns(orm, { status, before, limit: atMost }),
        });
        const isEmpty = (listed.value as unknown[]).length === 0;
        return { ...listed, note: isEmpty ? 'Nothing found.' : undefined };
      }),
    );

  moneyReturn
    .command('retry')
    .description('ask the network again, with a new idempotency key: first make sure that it has not acted')
    .argument('<id>', 'of the return')
    .requiredOption('--reason <reason>', 'how you know, for the audit log', read(Text(500)))
    .addHelpText(
      'after',
      examples('money-return retry ret_01k0… --reason "no transfer at the issuer, ticket 4711"'),
    )
    .action(
      verb(async (id: string, { reason }: { reason: string }) => {
        await retryReturn(await session.operator(), id, reason);
        return { value: await readReturn(await session.orm(), id), note: 'A worker asks within seconds.' };
      }),
    );

  moneyReturn
    .command('dismiss')
    .description('record that a return needs nothing more, such as one that was made by hand')
    .argument('<id>', 'of the return')
    .requiredOption('--reason <reason>', 'how you know, for the audit log', read(Text(500)))
    .addHelpText('after', examples('money-return dismiss ret_01k0… --reason "moved by hand, ticket 4711"'))
    .action(
      verb(async (id: string, { reason }: { reason: string }) => {
        await dismissReturn(await session.operator(), id, reason);
        return { value: await readReturn(await session.orm(), id) };
      }),
    );
}

interface ReturnRow {
  id: string;
  card_id: string;
  partner_id: string;
  amount: string;
  status: MoneyReturnStatus;
  reason: string | null;
  attempts: number;
  token: string;
  created_at: string;
}

const RETURN = sql`SELECT id, card_id, partner_id, amount_cents AS amount, status, reason, attempts, token, created_at
  FROM money_return`;

async function readReturns(orm: Orm, filter: { status: string; before: string | null; limit: number }) {
  return (await selectNewest(orm.em.fork(), filter)).map(present);
}

async function readReturn(orm: Orm, id: string) {
  const [row] = await withId(orm.em.fork(), { id });
  if (row === undefined) throw unknownId('ret', id, 'run "operator money-return list"');
  return present(row);
}

const selectNewest = readStatement(
  (_, { status, before, limit }: { status: string; before: string | null; limit: number }) => sql<ReturnRow>`
    ${RETURN} WHERE status = ${status} AND (${before}::text IS NULL OR id < ${before}) ORDER BY id DESC LIMIT ${limit}`,
  { acrossTenants: 'operator' },
);

const withId = readStatement((_, { id }: { id: string }) => sql<ReturnRow>`${RETURN} WHERE id = ${id}`, {
  acrossTenants: 'operator',
});

const present = ({ created_at, amount, ...row }: ReturnRow) => ({
  ...row,
  amount: Number(amount),
  created: new Date(created_at).toISOString(),
});
