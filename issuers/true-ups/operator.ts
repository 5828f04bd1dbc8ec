import type { Command } from 'commander';
import { sql } from 'kysely';
import { z } from 'zod';
import type { TrueUpDirection, TrueUpStatus } from '../../cards/tables.ts';
import { isId } from '../../domain/ids.ts';
import { read, Text } from '../../operator/flag-values.ts';
import { listNewest, type Verbs, withLimit } from '../../operator/verbs.ts';
import type { Orm } from '../../platform/db/orm.ts';
import { readStatement } from '../../platform/db/sql.ts';
import { dismissTrueUp, retryTrueUp, unknownTrueUp } from './true-ups.ts';

const STATUSES = ['pending', 'refused', 'succeeded', 'dismissed'] as const satisfies TrueUpStatus[];
const StatusName = z.enum(STATUSES, `must be one of ${STATUSES.join(', ')}`);
const COLUMNS = 'created id card_id amount status reason attempts token'.split(' ');

interface ListFlags {
  status?: TrueUpStatus;
  before?: string | null;
  limit?: number;
}

/** What is true-ups of one direction, in words. */
interface Kind {
  direction: TrueUpDirection;
  noun: string;
  word: string;
  prefix: 'ret' | 'cov';
  description: string;
}

const RETURN = {
  direction: 'from_card',
  noun: 'money-return',
  word: 'return',
  prefix: 'ret',
  description: "what the card network has to take back from blocked cards' accounts, newest first",
} as const;
const COVER = {
  direction: 'to_card',
  noun: 'money-cover',
  word: 'cover',
  prefix: 'cov',
  description:
    "what the card network has to move to cards' accounts, because the prepaid balance paid it, newest first",
} as const;

export function moneyReturnNoun(moneyReturn: Command, verbs: Verbs): void {
  addVerbs(moneyReturn, verbs, RETURN);
}

export function moneyCoverNoun(moneyCover: Command, verbs: Verbs): void {
  addVerbs(moneyCover, verbs, COVER);
}

function addVerbs(command: Command, { session, verb, examples, err }: Verbs, kind: Kind): void {
  const { direction, noun, word, prefix, description } = kind;
  const TrueUpId = z
    .string()
    .refine((text) => isId(prefix, text), `must be the id of a ${word}: ${prefix}_01k0…`);
  command.addHelpText('after', examples(`${noun} list`, `${noun} list --status refused`));

  const list = command
    .command('list')
    .description(description)
    .option('--status <status>', 'pending (the default), refused, succeeded or dismissed', read(StatusName))
    .option('--before <id>', 'only those older than this one: the next page', read(TrueUpId));
  withLimit(list)
    .addHelpText('after', examples(`${noun} list --status refused`))
    .action(
      verb(async ({ status = 'pending', before = null, limit }: ListFlags) => {
        const orm = await session.orm();
        const listed = await listNewest(err, {
          noun: word,
          columns: COLUMNS,
          limit,
          isPaged: true,
          readNewest: (atMost) => readTrueUps(orm, { direction, status, before, limit: atMost }),
        });
        const isEmpty = (listed.value as unknown[]).length === 0;
        return { ...listed, note: isEmpty ? 'Nothing found.' : undefined };
      }),
    );

  command
    .command('retry')
    .description('ask the network again, with a new idempotency key: first make sure that it has not acted')
    .argument('<id>', `of the ${word}`, read(TrueUpId))
    .requiredOption('--reason <reason>', 'how you know, for the audit log', read(Text(500)))
    .addHelpText(
      'after',
      examples(`${noun} retry ${prefix}_01k0… --reason "no transfer at the issuer, ticket 4711"`),
    )
    .action(
      verb(async (id: string, { reason }: { reason: string }) => {
        await retryTrueUp(await session.operator(), id, reason);
        return { value: await readTrueUp(await session.orm(), id), note: 'A worker asks within seconds.' };
      }),
    );

  command
    .command('dismiss')
    .description(`record that a ${word} needs nothing more, such as one that was made by hand`)
    .argument('<id>', `of the ${word}`, read(TrueUpId))
    .requiredOption('--reason <reason>', 'how you know, for the audit log', read(Text(500)))
    .addHelpText('after', examples(`${noun} dismiss ${prefix}_01k0… --reason "moved by hand, ticket 4711"`))
    .action(
      verb(async (id: string, { reason }: { reason: string }) => {
        await dismissTrueUp(await session.operator(), id, reason);
        return { value: await readTrueUp(await session.orm(), id) };
      }),
    );
}

interface TrueUpRow {
  id: string;
  card_id: string;
  partner_id: string;
  amount: string;
  status: TrueUpStatus;
  reason: string | null;
  attempts: number;
  token: string;
  created_at: string;
}

const TRUE_UP = sql`SELECT id, card_id, partner_id, amount_cents AS amount, status, reason, attempts, token, created_at
  FROM true_up`;

interface Filter {
  direction: TrueUpDirection;
  status: string;
  before: string | null;
  limit: number;
}

async function readTrueUps(orm: Orm, filter: Filter) {
  return (await selectNewest(orm.em.fork(), filter)).map(present);
}

async function readTrueUp(orm: Orm, id: string) {
  const [row] = await withId(orm.em.fork(), { id });
  if (row === undefined) throw unknownTrueUp(id);
  return present(row);
}

const selectNewest = readStatement(
  (_, { direction, status, before, limit }: Filter) => sql<TrueUpRow>`
    ${TRUE_UP} WHERE direction = ${direction} AND status = ${status} AND (${before}::text IS NULL OR id < ${before}) ORDER BY id DESC LIMIT ${limit}`,
  { acrossTenants: 'operator' },
);

const withId = readStatement((_, { id }: { id: string }) => sql<TrueUpRow>`${TRUE_UP} WHERE id = ${id}`, {
  acrossTenants: 'operator',
});

const present = ({ created_at, amount, ...row }: TrueUpRow) => ({
  ...row,
  amount: Number(amount),
  created: new Date(created_at).toISOString(),
});
