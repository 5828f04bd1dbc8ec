import pg from 'pg';
import { currentWork } from '../../platform/process/work-context.ts';

/**
 * Notes the text of every statement that this process sends to one database from now on, until it is stopped. A stack that
 * several files share works on a database of its own, and its relay and sweeps never pause.
 * @returns all texts; and those that a request sent by itself, by its Request-Id
 */
export function countStatements(databaseUrl: string) {
  const database = new URL(databaseUrl).pathname.slice(1);
  const original = pg.Client.prototype.query as (...args: unknown[]) => unknown;
  const texts: string[] = [];
  const ofRequests = new Map<string | null, string[]>();
  pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]): unknown {
    const [first] = args;
    const text = typeof first === 'string' ? first : (first as { text: string }).text;
    if (this.database === database) {
      const { requestId } = currentWork();
      texts.push(text);
      ofRequests.set(requestId, [...(ofRequests.get(requestId) ?? []), text]);
    }
    return original.apply(this, args);
  } as typeof pg.Client.prototype.query;
  return {
    texts,
    ofRequest: (requestId: string | null) => ofRequests.get(requestId) ?? [],
    stop: () => {
      pg.Client.prototype.query = original as typeof pg.Client.prototype.query;
    },
  };
}
