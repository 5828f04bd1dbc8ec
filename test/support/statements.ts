import pg from 'pg';

/** Notes the text of every statement that this process sends from now on, until it is stopped. */
export function countStatements(): { texts: string[]; stop(): void } {
  const original = pg.Client.prototype.query as (...args: unknown[]) => unknown;
  const texts: string[] = [];
  pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]): unknown {
    const [first] = args;
    texts.push(typeof first === 'string' ? first : (first as { text: string }).text);
    return original.apply(this, args);
  } as typeof pg.Client.prototype.query;
  return {
    texts,
    stop: () => {
      pg.Client.prototype.query = original as typeof pg.Client.prototype.query;
    },
  };
}
