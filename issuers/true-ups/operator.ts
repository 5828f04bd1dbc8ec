import { sql } from 'kysely';
import { z } from 'zod';
import type { TrueUpStatus } from '../../cards/tables.ts';
import { isId } from '../../domain/ids.ts';
import { argument, flag, list, type Noun, oneOf, reason, verb } from '../../operator/verbs.ts';
import type { Orm } from '../../platform/db/orm.ts';
import { readStatement } from '../../platform/db/sql.ts';
import type { TrueUpDirection } from '../card-network.ts';
import { dismissTrueUp, retryTrueUp, unknownTrueUp } from './true-ups.ts';

const STATUSES = ['pending', 'refused', 'succeeded', 'dismissed'] as const satisfies TrueUpStatus[];
const DIRECTIONS = ['to_card', 'from_card'] as const satisfies TrueUpDirection[];
const TrueUpId = z.string().refine((text) => isId('tru', text), 'must be the id of a true-up: tru_01k0…');

export const trueUpNoun: Noun = {
  list: list({
    about: "what the card network has to move to or from cards' accounts, newest first",
    takes: {
      status: flag('<status>', 'pending (the default), refused, succeeded or dismissed', oneOf(STATUSES)),
      direction: flag('<direction>', 'only those in this direction: to_card or from_card', oneOf(DIRECTIONS)),
    },
    pages: ['tru'],
    examples: ['', '--status refused'],
    columns: 'created id card_id direction amount status reason attempts token',
    read: readTrueUps,
  }),

  retry: verb({
    about:
      'ask the network again now. A refused true-up gets a new idempotency key: first make sure that the network has not acted',
    takes: { id: argument('of the true-up', TrueUpId), reason: reason('how you know, for the audit log') },
    examples: ['tru_01k0… --reason "no transfer at the issuer, ticket 4711"'],
    async run({ id, reason }, { session }) {
      await retryTrueUp(await session.operator(), id, reason);
      return { value: await readTrueUp(await session.orm(), id), note: 'A worker asks within seconds.' };
    },
  }),

  dismiss: verb({
    about: 'record that a true-up needs nothing more, such as one that was made by hand',
    takes: { id: argument('of the true-up', TrueUpId), reason: reason('how you know, for the audit log') },
    examples: ['tru_01k0… --reason "moved by hand, ticket 4711"'],
    async run({ id, reason }, { session }) {
      await dismissTrueUp(await session.operator(), id, reason);
      return { value: await readTrueUp(await session.orm(), id) };
    },
  }),
};

interface TrueUpRow {
  id: string;
  card_id: string;
  partner_id: string;
  direction: TrueUpDirection;
  amount: string;
  status: TrueUpStatus;
  reason: string | null;
  attempts: number;
  token: string;
  created_at: string;
}

const TRUE_UP = sql`SELECT id, card_id, partner_id, direction, amount_cents AS amount, status,
  reason, attempts, token, created_at FROM true_up`;

interface Filter {
  status: TrueUpStatus | null;
  direction: TrueUpDirection | null;
  before: string | null;
  limit: number;
}

async function readTrueUps(orm: Orm, filter: Filter) {
  const rows = await selectNewest(orm.em.fork(), { ...filter, status: filter.status ?? 'pending' });
  return rows.map(present);
}

async function readTrueUp(orm: Orm, id: string) {
  const [row] = await withId(orm.em.fork(), { id });
  if (row === undefined) throw unknownTrueUp(id);
  return present(row);
}

const selectNewest = readStatement(
  (_, { status, direction, before, limit }: Filter) => sql<TrueUpRow>`
    ${TRUE_UP} WHERE status = ${status} AND (${direction}::text IS NULL OR direction = ${direction})
      AND (${before}::text IS NULL OR id < ${before}) ORDER BY id DESC LIMIT ${limit}`,
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
