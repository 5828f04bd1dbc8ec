import { channel } from 'node:diagnostics_channel';
import type { EntityManager } from '@mikro-orm/postgresql';
import {
  type Compilable,
  CompiledQuery,
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type QueryExecutorProvider,
  type RawBuilder,
  sql,
} from 'kysely';
import type { ReadonlyKysely } from 'kysely/readonly';
import type { Tenant } from '../../domain/mode.ts';
import type { Tables } from './entities.ts';

/** Runs statements that read: an EntityManager, inside its transaction if it has one. */
export type Reader = EntityManager;

declare const OPEN: unique symbol;

/** Runs statements that write or lock: the EntityManager from `transaction()`. */
export type Transactor = EntityManager & { readonly [OPEN]: true };

/** Builds statements that read. An unknown column is a type error. */
export type Reads = ReadonlyKysely<Tables>;

/** Builds statements that write, too. */
export type Writes = Kysely<Tables>;

/** A statement of Kysely's builder, or one written out in its `sql` template with the type of its rows. */
type Statement<Row> = Compilable<Row> | RawBuilder<Row>;

/**
 * Why a statement may reach rows of a tenant's table that it does not tie to the `partnerId` and `mode` it is
 * given. Every other statement has to, and a test reads each with PostgreSQL's own grammar
 * (docs/decisions/tenant-guard.md).
 */
const ACROSS_TENANTS = {
  operator: 'An operator looks at any account, or names what to change by its id alone.',
  queue: 'The worker takes due work of all accounts in turns, or prunes what is over.',
  measurement: 'A metric, what waits for a person, or a check, of all accounts.',
  id: 'The id is from a row that was read before, or of a claim that the process or workflow holds, never from a request.',
  network: 'The card network names a card or a transaction of any account by its own id.',
  chain: 'A transfer on the chain names only its address.',
  key: 'API keys are looked up to find out whose they are, and their use is recorded.',
} as const;

export interface StatementOptions {
  acrossTenants?: keyof typeof ACROSS_TENANTS;
}

/** A statement as it is built, for the test that checks it. */
export interface BuiltStatement {
  text: string;
  /** The values' names, in the order of the parameters; undefined for a constant. */
  names: readonly (string | undefined)[];
  acrossTenants: keyof typeof ACROSS_TENANTS | undefined;
  /** Its stack says where it was built. */
  built: Error;
}

/** Gets a {@link BuiltStatement} for each statement of the modules that are loaded from now on. */
const statements = channel('card-issuing:statements');

/**
 * Creates a statement that reads. It is built once, right here, so it costs no more than written-out SQL
 * (docs/decisions/statements-are-built-once.md).
 * @param build is called with stand-ins for the values, which it may only pass on to the statement.
 *   Everything else in the statement is a constant. A partial index needs its constant in the text:
 *   `sql.lit`.
 * @throws Error if the statement writes or locks: that takes {@link writeStatement}
 */
export function readStatement<Values extends object, Row>(
  build: (db: Reads, values: Values) => Statement<Row>,
  options: StatementOptions = {},
): (em: Reader, values: Values) => Promise<Row[]> {
  const { text, bind } = compile<Values>((values) => build(READER, values), options);
  mustOnlyRead(text);
  return (em, values) => query(em, text, bind(values));
}

/** Makes a {@link readStatement} of one account's rows in one mode. */
export function tenantStatement<Values extends object, Row>(
  build: (db: Reads, values: Values & Tenant) => Statement<Row>,
): (em: Reader, tenant: Tenant, values: Values) => Promise<Row[]> {
  const { text, bind } = compile<Values & Tenant>((values) => build(READER, values), {});
  mustOnlyRead(text);
  return (em, { partnerId, mode }, values) => query(em, text, bind({ ...values, partnerId, mode }));
}

/** Like {@link readStatement}, for a statement that writes or locks. It needs a transaction. */
export function writeStatement<Values extends object, Row>(
  build: (db: Writes, values: Values) => Statement<Row>,
  options: StatementOptions = {},
): (tx: Transactor, values: Values) => Promise<Row[]> {
  const { text, bind } = compile<Values>((values) => build(BUILDER, values), options);
  return (tx, values) => query(tx, text, bind(values));
}

/**
 * Creates a {@link writeStatement} that is a whole transaction by itself: no BEGIN, no COMMIT, one round
 * trip.
 */
export function autocommitStatement<Values extends object, Row>(
  build: (db: Writes, values: Values) => Statement<Row>,
  options: StatementOptions = {},
): (orm: { em: EntityManager }, values: Values) => Promise<Row[]> {
  const { text, bind } = compile<Values>((values) => build(BUILDER, values), options);
  return (orm, values) => query(orm.em.fork(), text, bind(values));
}

/** How many rows of a cursor are in memory at a time. */
const CURSOR_ROWS = 200;

/**
 * Makes a {@link tenantStatement} for any number of rows: they come in batches, as they are asked for. It
 * needs a transaction, and there can be one at a time in it.
 */
export function cursorStatement<Values extends object, Row>(
  build: (db: Reads, values: Values & Tenant) => Statement<Row>,
): (em: Reader, tenant: Tenant, values: Values) => AsyncGenerator<Row[]> {
  const { text, bind } = compile<Values & Tenant>((values) => build(READER, values), {});
  mustOnlyRead(text);
  return async function* (em, { partnerId, mode }, values) {
    await query(em, `DECLARE batches NO SCROLL CURSOR FOR ${text}`, bind({ ...values, partnerId, mode }));
    for (;;) {
      const rows = await query<Row>(em, `FETCH ${CURSOR_ROWS} FROM batches`);
      if (rows.length === 0) return;
      yield rows;
    }
  };
}

/** Matches any of these values, however many there are: they are bound as one array. */
export const anyOf = <Value>(values: readonly Value[]) => sql<Value>`any(${values})`;

/** Columns of a table for a `sql` template, under the alias that the table has there. */
export const columnList = <Table extends keyof Tables>(
  table: Table,
  columns: readonly (keyof Tables[Table] & string)[],
  alias: string = table,
) => sql.join(columns.map((column) => sql.ref(`${alias}.${column}`)));

/** A statement of a `sql` template's WITH. The type has the columns that the others find in its rows. */
export interface Cte<Row> {
  /** `name AS (statement)`. */
  definition: RawBuilder<unknown>;
  /** What stands in a FROM. */
  rows: RawBuilder<Row>;
}

export const cte = <Row>(name: string, statement: Statement<Row>): Cte<Row> => ({
  definition: sql`${sql.ref(name)} AS (${statement})`,
  rows: sql.ref(name) as RawBuilder<unknown> as RawBuilder<Row>,
});

/** `WITH` these statements, for a `sql` template. */
export const withCtes = (ctes: readonly Cte<unknown>[]): RawBuilder<unknown> =>
  sql`WITH ${sql.join(ctes.map(({ definition }) => definition))}`;

/**
 * A CTE for a `sql` template that makes the transaction commit without waiting for the disk. The statement
 * has to read from `asynchronous_commit`. Use it only for data that a crash of PostgreSQL may lose: a lease,
 * the record of an attempt that is then repeated, a claim under which nothing has happened yet. The next
 * ordinary commit flushes it too.
 */
export const ASYNCHRONOUS_COMMIT = sql.raw(
  "asynchronous_commit AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))",
);

/**
 * Runs one statement with bound parameters (`$1`, `$2` …) in the EntityManager's transaction, or on a pooled
 * connection outside one, and returns its rows. Values never become part of the statement's text, as
 * MikroORM's own `em.execute` writes them. So no error message has them, and the server's log only if its
 * settings say so, which the start warns about (docs/operating.md, "PostgreSQL's log").
 */
export async function query<Row>(em: Reader, text: string, values: readonly unknown[] = []): Promise<Row[]> {
  const executor =
    em.getTransactionContext<QueryExecutorProvider & Executor>() ?? em.getConnection().getClient();
  const result = await executor.executeQuery(CompiledQuery.raw(text, [...values]));
  return result.rows as Row[];
}

interface Executor {
  executeQuery(query: CompiledQuery): Promise<{ rows: unknown[] }>;
}

/** Builds statements and runs none. */
const BUILDER = new Kysely<Tables>({
  dialect: {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (db) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  },
});

// The two types do not overlap, so this needs a cast.
const READER = BUILDER as never as Reads;

/** A placeholder for a value while a statement is built. */
class StandIn {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }

  [Symbol.toPrimitive](): never {
    throw new Error(
      `the value "${this.name}" is not known while the statement is built: compute it before the statement runs`,
    );
  }
}

function compile<Values extends object>(
  build: (values: Values) => Statement<unknown>,
  { acrossTenants }: StatementOptions,
) {
  const standIns = new Proxy({} as Values, {
    get: (_, name) => new StandIn(String(name)),
    ownKeys: () => {
      throw new Error(
        'a statement has to name each value it takes: they cannot be enumerated while it is built',
      );
    },
  });
  const { sql: text, parameters } = build(standIns).compile(BUILDER);
  const names = parameters.map((parameter) => (parameter instanceof StandIn ? parameter.name : undefined));
  if (statements.hasSubscribers) {
    const built: BuiltStatement = { text, names, acrossTenants, built: new Error(text) };
    statements.publish(built);
  }
  return {
    text,
    bind: (values: Values) =>
      parameters.map((parameter) =>
        parameter instanceof StandIn ? values[parameter.name as keyof Values] : parameter,
      ),
  };
}

function mustOnlyRead(text: string): void {
  const found = /\b(insert into|update "?\w+|delete from|for (no key )?update|for (key )?share)\b/i.exec(
    text,
  );
  if (found !== null) throw new Error(`a statement that reads can't "${found[0]}": use writeStatement`);
}
