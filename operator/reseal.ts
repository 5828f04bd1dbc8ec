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
  /** Its primary key: text, possibly followed by a number. */
  key: readonly [string] | readonly [string, string];
  column: string;
  /** What it is sealed for, by the first part of the key. */
  context(id: string): string;
  /** Whether its rows have `created_at`. */
  hasTime?: true;
}

const ENDPOINT = { table: 'webhook_endpoint', key: ['id'], context: endpointSecretContext } as const;
const ATTEMPT = { table: 'delivery_attempt', key: ['event_id', 'number'], column: 'answer_start' } as const;
const CLAIM = { table: 'idempotency_claim', key: ['id'], hasTime: true } as const;
const KEPT = { key: ['id'], column: 'body', hasTime: true } as const;

const PLACES: readonly Place[] = [
  { name: 'derived_keys', table: 'ring_key', key: ['id'], column: 'root', context: rootContext },
  { name: 'webhook_secrets', ...ENDPOINT, column: 'secret' },
  { name: 'previous_webhook_secrets', ...ENDPOINT, column: 'previous_secret' },
  { name: 'receiver_responses', ...ATTEMPT, context: answerStartContext },
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
  for (let after: SealedRow | undefined, size = BATCH; size === BATCH; ) {
    const batch = await read(orm.em.fork(), {
      first: after?.first ?? '',
      second: after?.second ?? '',
      currentKey: ring.primaryId,
      startedAt,
    });
    size = batch.length;
    after = batch.at(-1);
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
  first: string;
  second: string;
  sealed: Buffer;
  resealed: Buffer;
}

/** A row with its new value; none if it is under the current key, or can't be opened. */
function reseal(ring: KeyRing, { context }: Place, row: SealedRow, seen: Seen): ResealedRow[] {
  const { first, second, sealed, is_fresh: isFresh } = row;
  if (sealed === null) return [];
  const keyId = readKeyId(sealed);
  if (!ring.ids.includes(keyId)) {
    seen.missing.add(keyId);
    return [];
  }
  if (isFresh) seen.fresh.add(keyId);
  try {
    const value = ring.open(sealed, context(first));
    return [{ first, second, sealed, resealed: ring.seal(value, context(first)) }];
  } catch {
    // It is damaged: it is counted, and the others are still resealed.
    return [];
  }
}

/** A row of a place; `sealed` is null if there is nothing to reseal. */
interface SealedRow {
  first: string;
  second: string;
  sealed: Buffer | null;
  /** Whether it was made after the command began. */
  is_fresh: boolean;
}

interface Batch {
  firsts: string[];
  seconds: string[];
  sealed: Buffer[];
  resealed: Buffer[];
}

const toColumns = (rows: readonly ResealedRow[]): Batch => ({
  firsts: rows.map(({ first }) => first),
  seconds: rows.map(({ second }) => second),
  sealed: rows.map(({ sealed }) => sealed),
  resealed: rows.map(({ resealed }) => resealed),
});

type Statements = ReturnType<typeof placeStatements>;

// Written out, since tables and keys differ. It waits for no lock, and leaves a row that has changed since it
// was read.
function placeStatements({ table, key, column, hasTime }: Place) {
  const [first, second] = key;
  const sealed = sql.ref(`${table}.${column}`);
  // The second part of a key sorts by its own type, but is bound and read as text.
  const ofSecond = (value: RawBuilder<unknown>) =>
    second === 'number' ? sql`coalesce(nullif(${value}, ''), '-1')::integer` : sql`${value}::text`;
  const own = (part: string) => sql.ref(`${table}.${part}`);
  const whole = second === undefined ? own(first) : sql`(${own(first)}, ${own(second)})`;
  const place = (a: RawBuilder<unknown>, b: RawBuilder<unknown>) =>
    second === undefined ? a : sql`(${a}, ${ofSecond(b)})`;
  const secondAsText = second === undefined ? sql`''` : sql`${sql.ref(second)}::text`;
  return {
    read: readStatement(
      (_, values: { first: string; second: string; currentKey: string; startedAt: Date }) => sql<SealedRow>`
        SELECT ${sql.ref(first)} AS first, ${secondAsText} AS second,
          CASE WHEN ${keyIdIn(sealed)} <> ${values.currentKey} THEN ${sealed} END AS sealed,
          ${hasTime ? sql`created_at >= ${values.startedAt}` : sql`false`} AS is_fresh
        FROM ${sql.table(table)}
        WHERE ${whole} > ${place(sql`${values.first}::text`, sql`${values.second}::text`)}
        ORDER BY ${sql.join(key.map((part) => sql.ref(part)))} LIMIT ${sql.lit(BATCH)}`,
      { acrossTenants: 'operator' },
    ),
    write: writeStatement(
      (_, batch: Batch) => sql<{ done: number }>`
        WITH wanted AS (
          SELECT * FROM unnest(${batch.firsts}::text[], ${batch.seconds}::text[], ${batch.sealed}::bytea[],
            ${batch.resealed}::bytea[]) w (first, second, sealed, resealed)
        ), held AS MATERIALIZED (
          SELECT w.first, w.second, w.resealed FROM ${sql.table(table)}
          JOIN wanted w ON ${whole} = ${place(sql`w.first`, sql`w.second`)} AND ${sealed} = w.sealed
          FOR NO KEY UPDATE OF ${sql.table(table)} SKIP LOCKED
        )
        UPDATE ${sql.table(table)} SET ${sql.ref(column)} = held.resealed FROM held
        WHERE ${whole} = ${place(sql`held.first`, sql`held.second`)} RETURNING 1 AS done`,
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
