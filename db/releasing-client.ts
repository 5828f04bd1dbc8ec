import type { Socket } from 'node:net';
import pg from 'pg';

type Release = (error?: Error | boolean) => void;

/**
 * A `pg` client that goes back to its pool by itself when its connection ends. Kysely forgets that: a transaction whose
 * BEGIN or ROLLBACK fails keeps its client for ever (kysely-org/kysely#1990), and a process that lost its connections
 * a few times would have a pool without a free place.
 */
export class ReleasingClient extends pg.Client {
  #release: Release = () => {};

  constructor(config?: string | pg.ClientConfig) {
    super(config);
    this.once('end', () => this.#release(true));
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
