import type { Socket } from 'node:net';
import { ReleasingClient } from './releasing-client.ts';

/** What `pg` does not declare of its client: the protocol's messages, and what the server has parsed by name. */
interface Wire {
  stream: Socket;
  parsedStatements: Record<string, string>;
  parse(message: { name: string; text: string }): void;
  bind(message: { statement: string }): void;
  execute(message: { portal: string }): void;
}

interface Bound {
  name?: string;
  values?: unknown[];
}

const NOTHING = { command: '', rowCount: 0, rows: [] };

/**
 * A `pg` client whose BEGIN travels with the first statement of its transaction, one round trip for both. They stand
 * before one Sync of the protocol: if BEGIN fails, PostgreSQL skips the statement, which so never runs outside a
 * transaction. A transaction without a statement asks nothing of the server.
 */
export class TransactionClient extends ReleasingClient {
  #owesBegin = false;

  // biome-ignore lint/suspicious/noExplicitAny: pg declares nine overloads; this passes all of them through.
  override query(...args: any[]): any {
    const [text] = args;
    if (text === 'begin') {
      this.#owesBegin = true;
      return Promise.resolve(NOTHING);
    }
    // biome-ignore lint/suspicious/noExplicitAny: as above.
    const ask = (...what: any[]): any => (super.query as any)(...what);
    if (!this.#owesBegin) return ask(...args);
    this.#owesBegin = false;
    if (text === 'commit' || text === 'rollback') return Promise.resolve(NOTHING);
    const bound: Bound = typeof text === 'string' ? { values: args[1] } : text;
    if (!this.#canJoin(bound)) return ask('begin').then(() => ask(...args));
    return this.#behindBegin(() => ask(...args));
  }

  /**
   * Statements without parameters go by the simple protocol, which has no common Sync. And `pg` would take BEGIN's
   * ParseComplete for that of a statement it prepares in the same breath.
   */
  #canJoin({ name, values = [] }: Bound): boolean {
    const { readyForQuery } = this as unknown as { readyForQuery: boolean };
    const isParsed = name === undefined || this.#wire.parsedStatements[name] !== undefined;
    return readyForQuery && values.length > 0 && isParsed;
  }

  async #behindBegin(ask: () => Promise<unknown[]>): Promise<unknown> {
    const wire = this.#wire;
    wire.stream.cork();
    let answers: Promise<unknown[]>;
    try {
      wire.parse({ name: '', text: 'begin' });
      wire.bind({ statement: '' });
      wire.execute({ portal: '' });
      answers = ask();
    } finally {
      wire.stream.uncork();
    }
    const [, answer] = await answers;
    return answer;
  }

  get #wire(): Wire {
    return (this as unknown as { connection: Wire }).connection;
  }
}
