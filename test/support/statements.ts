import pg from 'pg';

/**
 * Notes the text of every statement that this process sends to one database from now on, until it is stopped. A stack that
 * several files share works on a database of its own, and its relay and sweeps never pause.
 */
export function countStatements(databaseUrl: string): { texts: string[]; stop(): void } {
  const database = new URL(databaseUrl).pathname.slice(1);
  const original = pg.Client.prototype.query as (...args: unknown[]) => unknown;
  const texts: string[] = [];
  pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]): unknown {
    const [first] = args;
    const text = typeof first === 'string' ? first : (first as { text: string }).text;
    if (this.database === database) texts.push(text);
    return original.apply(this, args);
  } as typeof pg.Client.prototype.query;
  return {
    texts,
    stop: () => {
      pg.Client.prototype.query = original as typeof pg.Client.prototype.query;
    },
  };
}
