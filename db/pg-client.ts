import { createHash } from 'node:crypto';
import type { Socket } from 'node:net';
import pg from 'pg';

type Release = (error?: Error | boolean) => void;

interface ReleasingClientConfig extends pg.ClientConfig {
  /** How long a connection may owe a response before it counts as lost; 0 or omitted for no limit. */
  longestAnswerMs?: number;
}

/**
 * A `pg` client that goes back to its pool by itself when its connection ends. Kysely forgets that: a transaction whose
 * BEGIN or ROLLBACK fails keeps its client for ever (kysely-org/kysely#1990), and a process that lost its connections
 * a few times would have a pool without a free place.
 */
export class ReleasingClient extends pg.Client {
  #release: Release = () => {};
  readonly #longestAnswerMs: number;

  constructor(config: ReleasingClientConfig = {}) {
    super(config);
    this.#longestAnswerMs = config.longestAnswerMs ?? 0;
    this.once('end', () => this.#release(true));
  }

  // biome-ignore lint/suspicious/noExplicitAny: pg declares nine overloads; this passes all of them through.
  override query(...args: any[]): any {
    // biome-ignore lint/suspicious/noExplicitAny: as above.
    const answer = (super.query as any)(...args);
    return answer instanceof Promise ? this.within(answer) : answer;
  }

  /** Ends the connection if the server's answer does not come in time. */
  protected within<T>(answer: Promise<T>): Promise<T> {
    if (this.#longestAnswerMs > 0) {
      const patience = setTimeout(() => this.destroy(), this.#longestAnswerMs);
      const answered = () => clearTimeout(patience);
      answer.then(answered, answered);
    }
    return answer;
  }

  /** Ends the connection without asking the server, which may have stopped listening. */
  destroy(): void {
    (this as unknown as { connection: { stream: Socket } }).connection.stream.destroy();
  }

  get release(): Release {
    return this.#release;
  }

  /** The pool sets it each time it lends the client, and what it sets may be called only once. */
  set release(release: Release) {
    let isReleased = false;
    this.#release = (error) => {
      if (isReleased) return;
      isReleased = true;
      release(error);
    };
  }
}

const names = new Map<string, string>();

/**
 * A `pg` client that prepares every parametrised statement once per connection and then only binds it: the planner's
 * work is paid for once. The name is a digest of the text, so equal statements share it. A transaction's BEGIN goes out with its
 * first statement, which saves a round trip (docs/decisions/begin-with-the-first-statement.md).
 */
export class PreparedClient extends ReleasingClient {
  /** Whether BEGIN has been prepared on this connection. */
  #beginIsPrepared = false;
  /** Whether the next statement has to begin a transaction. */
  #beginsNext = false;

  // biome-ignore lint/suspicious/noExplicitAny: pg declares nine overloads; this passes all of them through.
  override query(...args: any[]): any {
    const [text, values] = args;
    const isPrepared = typeof text === 'string' && Array.isArray(values) && values.length > 0;
    if (text === 'begin' && this.#beginIsPrepared) {
      this.#beginsNext = true;
      return Promise.resolve(NO_ROWS);
    }
    if (text === 'begin') return this.#begin();
    if (this.#beginsNext) {
      this.#beginsNext = false;
      if (text === 'commit' || text === 'rollback') return Promise.resolve(NO_ROWS);
      if (isPrepared) return this.within(this.#queryFirst(text, values));
      // biome-ignore lint/suspicious/noExplicitAny: as above.
      return this.#begin().then(() => (super.query as any)(...args));
    }
    if (isPrepared) return super.query({ name: nameOf(text), text, values }, ...args.slice(2));
    // biome-ignore lint/suspicious/noExplicitAny: as above.
    return (super.query as any)(...args);
  }

  async #begin(): Promise<pg.QueryResult> {
    const begun = await super.query({ name: BEGIN, text: 'begin' });
    this.#beginIsPrepared = true;
    return begun;
  }

  #queryFirst(text: string, values: unknown[]): Promise<pg.QueryResult> {
    return new Promise((resolve, reject) => {
      const statement = new FirstStatement({ name: nameOf(text), text, values }, (error, result) =>
        error ? reject(error) : resolve(result),
      );
      super.query(statement as never);
    });
  }
}

/** The name that BEGIN is prepared under. */
const BEGIN = 'begin';

const NO_ROWS = { rows: [], rowCount: 0, command: 'BEGIN' };

interface Wire {
  bind(message: { portal: string; statement: string; values: unknown[] }): void;
  execute(message: { portal: string; rows: number }): void;
}

/** What pg's Query does that its types leave out. */
interface WireQuery {
  prepare(connection: Wire): void;
  handleCommandComplete(message: { text: string }, connection: Wire): void;
}

type QueryClass = new (
  config: pg.QueryConfig,
  callback: (error: Error | null, result: pg.QueryResult) => void,
) => WireQuery;

/**
 * A transaction's first statement, with BEGIN before it in the same message to the server. If BEGIN fails, the server skips
 * the statement, so it can't run outside a transaction.
 */
class FirstStatement extends (pg.Query as unknown as QueryClass) {
  override prepare(connection: Wire): void {
    connection.bind({ portal: '', statement: BEGIN, values: [] });
    connection.execute({ portal: '', rows: 0 });
    super.prepare(connection);
  }

  override handleCommandComplete(message: { text: string }, connection: Wire): void {
    if (message.text !== 'BEGIN') super.handleCommandComplete(message, connection);
  }
}

function nameOf(text: string): string {
  let name = names.get(text);
  if (name === undefined) {
    name = createHash('sha256').update(text).digest('base64url').slice(0, 24);
    names.set(text, name);
  }
  return name;
}
