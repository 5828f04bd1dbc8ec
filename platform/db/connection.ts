import { createHash } from 'node:crypto';
import type { Socket } from 'node:net';
import type { CompiledQuery, DatabaseConnection, QueryResult, TransactionSettings } from 'kysely';
import pg from 'pg';

interface ConnectionOptions extends pg.ClientConfig {
  /**
   * Whether statements are prepared. Behind a transaction pooler they can't be: one that was prepared on
   * another server connection doesn't exist on this one.
   */
  prepares: boolean;
  /** How long the server may owe a response before the connection counts as lost; 0 for no limit. */
  maxResponseMs: number;
}

/**
 * A connection of the pool. It prepares every statement with parameters once and then only binds it: the
 * planner's work is paid for once. A transaction's BEGIN goes out with its first statement, which saves a
 * round trip (docs/decisions/begin-with-the-first-statement.md).
 */
export class Connection implements DatabaseConnection {
  readonly client: pg.Client;
  readonly #prepares: boolean;
  readonly #maxResponseMs: number;
  #isLost = false;
  /** Whether BEGIN has been prepared. */
  #beginIsPrepared = false;
  /** Whether BEGIN has still to be sent, with the next statement. */
  #owesBegin = false;

  constructor({ prepares, maxResponseMs, ...config }: ConnectionOptions) {
    this.#prepares = prepares;
    this.#maxResponseMs = maxResponseMs;
    this.client = new pg.Client(config);
    // Whatever waits for a response gets the error as well.
    this.client.on('error', () => {
      this.#isLost = true;
    });
    this.client.once('end', () => {
      this.#isLost = true;
    });
  }

  /** Whether it has ended, or is about to. */
  get isLost(): boolean {
    return this.#isLost;
  }

  async executeQuery<Row>({ sql, parameters }: CompiledQuery): Promise<QueryResult<Row>> {
    const { command, rowCount, rows } = await this.#inTime(this.#send(sql, parameters));
    if (!CHANGES.has(command)) return { rows: rows ?? [] };
    return { rows, numAffectedRows: BigInt(rowCount ?? 0) };
  }

  // biome-ignore lint/correctness/useYield: Kysely wants a generator, but nothing here streams.
  async *streamQuery<Row>(): AsyncIterableIterator<QueryResult<Row>> {
    throw new Error('rows are not streamed: read them in pages');
  }

  async begin({ isolationLevel, accessMode }: TransactionSettings): Promise<void> {
    if (isolationLevel !== undefined || accessMode !== undefined) {
      const isolation = isolationLevel === undefined ? '' : ` isolation level ${isolationLevel}`;
      await this.#inTime(this.client.query(`start transaction${isolation} ${accessMode ?? ''}`));
    } else if (!this.#prepares) await this.#inTime(this.client.query('begin'));
    else if (this.#beginIsPrepared) this.#owesBegin = true;
    else await this.#inTime(this.#prepareAndBegin());
  }

  /** Commits or rolls back. A transaction without statements was never begun. */
  async end(command: 'commit' | 'rollback'): Promise<void> {
    if (this.#owesBegin) this.#owesBegin = false;
    else await this.#inTime(this.client.query(command));
  }

  /** Ends the connection, which must be idle. */
  close(): void {
    void this.client.end();
  }

  /** Ends the connection without asking the server, which may have stopped listening. */
  destroy(): void {
    this.#isLost = true;
    destroyClient(this.client);
  }

  async #send(text: string, values: readonly unknown[]): Promise<pg.QueryResult> {
    const owesBegin = this.#owesBegin;
    this.#owesBegin = false;
    if (!this.#prepares) return this.client.query(text, [...values]);
    if (values.length === 0) {
      if (owesBegin) await this.#prepareAndBegin();
      return this.client.query(text);
    }
    const statement = { name: statementName(text), text, values: [...values] };
    return owesBegin ? this.#beginAndQuery(statement) : this.client.query(statement);
  }

  async #prepareAndBegin(): Promise<pg.QueryResult> {
    const begun = await this.client.query({ name: BEGIN, text: 'begin' });
    this.#beginIsPrepared = true;
    return begun;
  }

  /**
   * BEGIN and the statement are one message: if BEGIN fails, the server skips the statement, so it can't run
   * outside a transaction.
   */
  async #beginAndQuery(statement: pg.QueryConfig): Promise<pg.QueryResult> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const query = new pg.Query(statement, (error, results) => (error ? reject(error) : resolve(results)));
    const { submit } = query;
    query.submit = (connection) => {
      connection.stream.cork();
      try {
        connection.bind({ statement: BEGIN }, true);
        connection.execute({}, true);
        return submit.call(query, connection);
      } finally {
        connection.stream.uncork();
      }
    };
    this.client.query(query);
    try {
      const [, result] = (await promise) as [begun: pg.QueryResult, result: pg.QueryResult];
      return result;
    } catch (error) {
      // Its stack leads to the socket; this one leads to the caller, as pg's own do.
      Error.captureStackTrace(error as Error);
      throw error;
    }
  }

  /** Ends the connection if the response does not come in time. */
  #inTime<T>(response: Promise<T>): Promise<T> {
    if (this.#maxResponseMs > 0) {
      const patience = setTimeout(() => this.destroy(), this.#maxResponseMs);
      const settled = () => clearTimeout(patience);
      response.then(settled, settled);
    }
    return response;
  }
}

/** Ends a connection without asking the server, which may have stopped listening. */
export function destroyClient(client: pg.Client): void {
  (client as unknown as { connection: { stream: Socket } }).connection.stream.destroy();
}

/** The commands whose number of rows MikroORM asks for. */
const CHANGES = new Set(['INSERT', 'UPDATE', 'DELETE', 'MERGE']);

/** The name that BEGIN is prepared under. */
const BEGIN = 'begin';

/** The names of prepared statements, by text. A name is a digest, so equal statements share it. */
const names = new Map<string, string>();

function statementName(text: string): string {
  let name = names.get(text);
  if (name === undefined) {
    name = createHash('sha256').update(text).digest('base64url').slice(0, 24);
    names.set(text, name);
  }
  return name;
}
