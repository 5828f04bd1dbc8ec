import pg from 'pg';

/** Runs `before` and `after` around every COMMIT that `pg` sends in this process, before its caller knows the result. */
export function aroundCommits(
  before: (client: pg.Client) => Promise<void>,
  after: (client: pg.Client) => Promise<void>,
): void {
  const original = pg.Client.prototype.query as (...args: unknown[]) => unknown;
  async function commit(this: pg.Client, ...args: unknown[]): Promise<unknown> {
    await before(this);
    const result = await original.apply(this, args);
    await after(this);
    return result;
  }
  pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]): unknown {
    return args[0] === 'commit' ? commit.apply(this, args) : original.apply(this, args);
  } as typeof pg.Client.prototype.query;
}
