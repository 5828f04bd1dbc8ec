import type { EntityManager, MikroORM } from '@mikro-orm/postgresql';
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
import type { Tenant } from '../domain/tenant.ts';
import type { Tables } from './tables.ts';

/** What can run a statement that reads: the EntityManager, inside its transaction if it has one. */
export type Sql = EntityManager;

declare const OPEN: unique symbol;

/** What can run a statement that writes: the EntityManager that `transaction()` gives. */
export type Transactor = EntityManager & { readonly [OPEN]: true };

/** Builds statements that read; a column that a table does not have is a type error. */
export type Reads = ReadonlyKysely<Tables>;

/** Builds statements that write, too. */
export type Writes = Kysely<Tables>;

/**
 * Runs one statement with bound parameters (`$1`, `$2` …) in the EntityManager's transaction, or on a pooled
 * connection outside one, and returns its rows. Values never become part of the statement's text, so neither an
 * error message nor a server log can carry them (MikroORM's own `em.execute` writes them into the text).
 */
export async function query<Row>(em: Sql, text: string, values: readonly unknown[] = []): Promise<Row[]> {
  const executor =
    em.getTransactionContext<QueryExecutorProvider & Executor>() ?? em.getConnection().getClient();
  const result = await executor.executeQuery(CompiledQuery.raw(text, [...values]));
  return result.rows as Row[];
}

interface Executor {
  executeQuery(query: CompiledQuery): Promise<{ rows: unknown[] }>;
}

/** A statement as its builder gives it: Kysely's, or SQL written out in its `sql` template. */
type Built<Row> = Compilable<Row> | RawBuilder<Row>;

/**
 * A statement that reads, typed by the tables, for {@link query}: it is built once, here and now, and costs what written-out
 * SQL does (docs/decisions/statements-are-built-once.md).
 * @param build is called with stand-ins for the values: it may pass them on to the statement, and nothing else. What
 *   it takes from elsewhere is bound as it is now; a constant that a partial index asks for needs `sql.lit`.
 */
export function readStatement<Values extends object, Row>(
  build: (db: Reads, values: Values) => Built<Row>,
): (em: Sql, values: Values) => Promise<Row[]> {
  const { text, bind } = compile<Values>((values) => build(READER, values));
  return (em, values) => query(em, text, bind(values));
}

/** {@link readStatement}, of one account's rows in one mode. @throws Error where the statement does not say whose they are. */
export function tenantStatement<Values extends object, Row>(
  build: (db: Reads, values: Values & Tenant) => Compilable<Row>,
): (em: Sql, tenant: Tenant, values: Values) => Promise<Row[]> {
  const { text, bind, names } = compile<Values & Tenant>((values) => build(READER, values));
  const [, partnerId, mode] = /"partner_id" = \$(\d+) and (?:"\w+"\.)?"mode" = \$(\d+)/.exec(text) ?? [];
  if (names[Number(partnerId) - 1] !== 'partnerId' || names[Number(mode) - 1] !== 'mode') {
    throw new Error(
      'a tenant statement must filter by partner_id and then mode, with the values it is given',
    );
  }
  return (em, { partnerId, mode }, values) => query(em, text, bind({ ...values, partnerId, mode }));
}

/** {@link readStatement} for a statement that writes: it needs a transaction. */
export function writeStatement<Values extends object, Row>(
  build: (db: Writes, values: Values) => Built<Row>,
): (tx: Transactor, values: Values) => Promise<Row[]> {
  const { text, bind } = compile<Values>((values) => build(BUILDER, values));
  return (tx, values) => query(tx, text, bind(values));
}

/** {@link writeStatement} for a statement that is the whole of its transaction: it costs one round trip. */
export function autocommitStatement<Values extends object, Row>(
  build: (db: Writes, values: Values) => Built<Row>,
): (orm: MikroORM, values: Values) => Promise<Row[]> {
  const { text, bind } = compile<Values>((values) => build(BUILDER, values));
  return (orm, values) => query(orm.em.fork(), text, bind(values));
}

/** One of these values, however many they are: they are bound as one array. */
export const anyOf = <Value>(values: readonly Value[]) => sql<Value>`any(${values})`;

/** Builds statements and runs none. */
const BUILDER = new Kysely<Tables>({
  dialect: {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (db) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  },
});

// Kysely's way to say it: the two types do not overlap.
const READER = BUILDER as never as Reads;

/** Stands for a value while a statement is built. */
class StandIn {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }

  [Symbol.toPrimitive](): never {
    throw new Error(`the value "${this.name}" is not known yet: work it out before the statement is run`);
  }
}

function compile<Values extends object>(build: (values: Values) => Built<unknown>) {
  const standIns = new Proxy({} as Values, {
    get: (_, name) => new StandIn(String(name)),
    ownKeys: () => {
      throw new Error('a statement names each value it takes: which there are is not known yet');
    },
  });
  const built = build(standIns);
  const { sql: text, parameters } = 'isRawBuilder' in built ? built.compile(BUILDER) : built.compile();
  return {
    text,
    /** Of the values, in the order of parameters; undefined for a constant. */
    names: parameters.map((parameter) => (parameter instanceof StandIn ? parameter.name : undefined)),
    bind: (values: Values) =>
      parameters.map((parameter) =>
        parameter instanceof StandIn ? values[parameter.name as keyof Values] : parameter,
      ),
  };
}
