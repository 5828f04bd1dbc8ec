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
    if (this.#longestAnswerMs > 0 && answer instanceof Promise) {
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
 * work is paid for once. The name is a digest of the text, so equal statements share it.
 */
export class PreparedClient extends ReleasingClient {
  // biome-ignore lint/suspicious/noExplicitAny: pg declares nine overloads; this passes all of them through.
  override query(...args: any[]): any {
    const [text, values] = args;
    if (typeof text === 'string' && Array.isArray(values) && values.length > 0) {
      return super.query({ name: nameOf(text), text, values }, ...args.slice(2));
    }
    // biome-ignore lint/suspicious/noExplicitAny: as above.
    return (super.query as any)(...args);
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
