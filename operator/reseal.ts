import { type RawBuilder, sql } from 'kysely';
import { stateContext } from '../issuers/inbox/inbox.ts';
import { type KeyRing, readKeyId, rootContext } from '../platform/crypto/key-ring.ts';
import { readStatement, type Transactor, writeStatement } from '../platform/db/sql.ts';
import { transaction } from '../platform/db/transaction.ts';
import { type OperatorContext, recordAudit } from '../requests/operator-context.ts';
import { requestContext, responseContext } from '../requests/response.ts';
import { answerStartContext, endpointSecretContext } from '../webhooks/secrets.ts';

/** How many rows one statement reads. */
const BATCH = 1_000;
/** Locked rows are left for the next pass. */
const MAX_PASSES = 10;

/** The result for one table's sealed column. */
interface Resealed {
  place: string;
  /** How many rows were read, and how many of them were resealed under the current key. */
  rows: number;
  resealed: number;
  /** How many could not be written because others held or changed them. */
  left: number;
  /** How many are under a key that is not in the ring, or are damaged. */
  unreadable: number;
}

interface ResealReport {
  currentKey: string;
  places: Resealed[];
  /** Keys of the ring that nothing is sealed under any more. */
  unusedKeys: string[];
  /** Keys that a process has sealed with since the command began: it runs with an older ring. */
  stillSealing: string[];
  /** Keys that are needed and are not in the ring. */
  missingKeys: string[];
}

/** A column of sealed values. */
interface Place {
  name: string;
  table: string;
  /** The columns of its primary key, in order, and their types. */
  key: Readonly<Record<string, 'text' | 'integer'>>;
  column: string;
  /** What it is sealed for, by the first part of the key. */
  context(id: string): string;
  /** Whether its rows have `created_at`. */
  hasTime?: true;
}

const ID = { id: 'text' } as const;
const ENDPOINT = { table: 'webhook_endpoint', key: ID, context: endpointSecretContext } as const;
const ATTEMPT = { event_id: 'text', endpoint_id: 'text', number: 'integer' } as const;
const CLAIM = { table: 'idempotency_claim', key: ID, hasTime: true } as const;
const KEPT = { key: ID, column: 'body', hasTime: true } as const;

const PLACES: readonly Place[] = [
  { name: 'derived_keys', table: 'ring_key', key: ID, column: 'root', context: rootContext },
  { name: 'webhook_secrets', ...ENDPOINT, column: 'secret' },
  { name: 'previous_webhook_secrets', ...ENDPOINT, column: 'previous_secret' },
  {
    name: 'receiver_responses',
    table: 'delivery_attempt',
    key: ATTEMPT,
    column: 'answer_start',
    context: answerStartContext,
  },
  { name: 'stored_requests', ...CLAIM, column: 'request', context: requestContext },
  { name: 'stored_responses', ...CLAIM, column: 'response_body', context: responseContext },
  { name: 'network_states', ...KEPT, table: 'network_inbox', context: stateContext },
];

/**
 * Reseals, under the ring's current key, everything that is sealed under another one, and stores the roots of
 * the other keys, so that they can leave the ring. The values don't change. It can run while API and workers
 * are running, and again after an interruption: each batch is a transaction, and waits for no lock.
 * @param onProgress is called after each batch
 */
export async function resealEverything(
  { orm, ring, actor }: OperatorContext,
  onProgress: (place: Resealed) => void,
): Promise<ResealReport> {
  const seen: Seen = { startedAt: new Date(), fresh: new Set(), missing: new Set(), hasAudit: false };
  const record = (tx: Transactor) => {
    if (seen.hasAudit) return;
    const detail = { keys: ring.ids };
    recordAudit(tx, { actor, action: 'key-ring.reseal', subject: ring.primaryId, detail });
    seen.hasAudit = true;
  };
  await transaction(orm, async (tx) => {
    const roots = ring.ids.map((id) => ring.sealRoot(id));
    if ((await keepRoots(tx, { ids: ring.ids, roots })).length > 0) record(tx);
  });
  const places: Resealed[] = [];
  for (const place of PLACES) {
    const total: Resealed = { place: place.name, rows: 0, resealed: 0, left: 0, unreadable: 0 };
    for (let pass = 1; pass === 1 || (total.left > 0 && pass <= MAX_PASSES); pass++) {
      Object.assign(total, { rows: 0, left: 0, unreadable: 0 });
      await resealPlace({ orm, ring, record, seen }, place, total, onProgress);
    }
    places.push(total);
  }
  const isDone = places.every(({ left }) => left === 0);
  const stillSealing = [...seen.fresh];
  return {
    currentKey: ring.primaryId,
    places,
    unusedKeys: isDone ? ring.ids.slice(1).filter((id) => !seen.fresh.has(id)) : [],
    stillSealing,
    missingKeys: [...seen.missing],
  };
}

/** What the passes have found so far. */
interface Seen {
  startedAt: Date;
  fresh: Set<string>;
  missing: Set<string>;
  hasAudit: boolean;
}

interface Resealing {
  orm: OperatorContext['orm'];
  ring: KeyRing;
  record(tx: Transactor): void;
  seen: Seen;
}

/** One pass, in the order of the table's key. */
async function resealPlace(
  { orm, ring, record, seen }: Resealing,
  place: Place,
  total: Resealed,
  onProgress: (place: Resealed) => void,
): Promise<void> {
  const { read, write } = STATEMENTS.get(place) as Statements;
  const { startedAt } = seen;
  const beforeAll: string[] = Object.values(place.key).map((type) => (type === 'text' ? '' : '-1'));
  for (let after = beforeAll, size = BATCH; size === BATCH; ) {
    const values = { after: JSON.stringify(after), currentKey: ring.primaryId, startedAt };
    const batch = await read(orm.em.fork(), values);
    size = batch.length;
    after = batch.at(-1)?.key ?? after;
    const found = batch.flatMap((row) => reseal(ring, place, row, seen));
    let written = 0;
    if (found.length > 0) {
      written = await transaction(orm, async (tx) => {
        const rows = await write(tx, toColumns(found));
        if (rows.length > 0) record(tx);
        return rows.length;
      });
    }
    total.rows += size;
    total.resealed += written;
    total.left += found.length - written;
    total.unreadable += batch.filter(({ sealed }) => sealed !== null).length - found.length;
    onProgress(total);
  }
}

interface ResealedRow {
  key: string[];
  sealed: Buffer;
  resealed: Buffer;
}

/** A row with its new value; none if it is under the current key, or can't be opened. */
function reseal(ring: KeyRing, { context }: Place, row: SealedRow, seen: Seen): ResealedRow[] {
  const { key, sealed, is_fresh: isFresh } = row;
  if (sealed === null) return [];
  const keyId = readKeyId(sealed);
  if (!ring.ids.includes(keyId)) {
    seen.missing.add(keyId);
    return [];
  }
  if (isFresh) seen.fresh.add(keyId);
  try {
    const sealedFor = context(key[0] as string);
    return [{ key, sealed, resealed: ring.seal(ring.open(sealed, sealedFor), sealedFor) }];
  } catch {
    // It is damaged: it is counted, and the others are still resealed.
    return [];
  }
}

/** A row of a place; `sealed` is null if there is nothing to reseal. */
interface SealedRow {
  /** The values of its key. */
  key: string[];
  sealed: Buffer | null;
  /** Whether it was made after the command began. */
  is_fresh: boolean;
}

interface Batch {
  keys: string[];
  sealed: Buffer[];
  resealed: Buffer[];
}

const toColumns = (rows: readonly ResealedRow[]): Batch => ({
  keys: rows.map(({ key }) => JSON.stringify(key)),
  sealed: rows.map(({ sealed }) => sealed),
  resealed: rows.map(({ resealed }) => resealed),
});

type Statements = ReturnType<typeof placeStatements>;

// Written out, since tables and keys differ. It waits for no lock, and leaves a row that has changed since it
// was read.
function placeStatements({ table, key, column, hasTime }: Place) {
  const sealed = sql.ref(`${table}.${column}`);
  const columns = Object.keys(key).map((name) => sql.ref(`${table}.${name}`));
  const whole = sql`(${sql.join(columns)})`;
  const keyIn = (json: RawBuilder<unknown>) => {
    const parts = Object.values(key).map((type, at) => sql`(${json} ->> ${sql.lit(at)})::${sql.raw(type)}`);
    return sql`(${sql.join(parts)})`;
  };
  return {
    read: readStatement(
      (_, values: { after: string; currentKey: string; startedAt: Date }) => sql<SealedRow>`
        SELECT ARRAY[${sql.join(columns.map((name) => sql`${name}::text`))}] AS key,
          CASE WHEN ${keyIdIn(sealed)} <> ${values.currentKey} THEN ${sealed} END AS sealed,
          ${hasTime ? sql`created_at >= ${values.startedAt}` : sql`false`} AS is_fresh
        FROM ${sql.table(table)}
        WHERE ${whole} > ${keyIn(sql`${values.after}::jsonb`)}
        ORDER BY ${sql.join(columns)} LIMIT ${sql.lit(BATCH)}`,
      { acrossTenants: 'operator' },
    ),
    write: writeStatement(
      (_, batch: Batch) => sql<{ done: number }>`
        WITH wanted AS (
          SELECT * FROM unnest(${batch.keys}::jsonb[], ${batch.sealed}::bytea[], ${batch.resealed}::bytea[])
            w (key, sealed, resealed)
        ), held AS MATERIALIZED (
          SELECT w.key, w.resealed FROM ${sql.table(table)}
          JOIN wanted w ON ${whole} = ${keyIn(sql`w.key`)} AND ${sealed} = w.sealed
          FOR NO KEY UPDATE OF ${sql.table(table)} SKIP LOCKED
        )
        UPDATE ${sql.table(table)} SET ${sql.ref(column)} = held.resealed FROM held
        WHERE ${whole} = ${keyIn(sql`held.key`)} RETURNING 1 AS done`,
      { acrossTenants: 'operator' },
    ),
  };
}

/** A sealed value begins with the length of its key's id, and the id (platform/crypto/key-ring.ts). */
const keyIdIn = (sealed: RawBuilder<unknown>) =>
  sql<string>`convert_from(substr(${sealed}, 2, get_byte(${sealed}, 0)), 'UTF8')`;

const STATEMENTS = new Map(PLACES.map((place) => [place, placeStatements(place)]));

const keepRoots = writeStatement(
  (_, { ids, roots }: { ids: string[]; roots: Buffer[] }) => sql<{ id: string }>`
    INSERT INTO ring_key (id, root) SELECT * FROM unnest(${ids}::text[], ${roots}::bytea[])
    ON CONFLICT (id) DO NOTHING RETURNING id`,
);
