import { existsSync, writeFileSync } from 'node:fs';
import pg from 'pg';

/** Where a process dies: at a statement with this text, or at the COMMIT of its transaction. */
export interface DeadlyStatement {
  text: string;
  when: 'before' | 'after' | 'before commit' | 'after commit';
  /** The signal that it gets: SIGKILL unless given. After a SIGSTOP it can be continued. */
  signal?: 'SIGSTOP';
  /** The fault is off until this file exists. */
  armedFile: string;
  /** Written right before the kill. Once it exists, nothing is killed. */
  markerFile: string;
}

// For `node --import`. DIE_AT_STATEMENT: JSON of a DeadlyStatement.
const place = JSON.parse(process.env.DIE_AT_STATEMENT ?? '') as DeadlyStatement;
/** Connections whose transaction has had the statement. */
const marked = new WeakSet<pg.Client>();
const original = pg.Client.prototype.query as (...args: unknown[]) => unknown;

function dieIf(isThere: boolean): void {
  if (!isThere || !existsSync(place.armedFile) || existsSync(place.markerFile)) return;
  writeFileSync(place.markerFile, '');
  process.kill(process.pid, place.signal ?? 'SIGKILL');
}

async function thenDie(this: pg.Client, ...args: unknown[]): Promise<unknown> {
  const result = await original.apply(this, args);
  dieIf(true);
  return result;
}

pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]): unknown {
  const [first] = args;
  const text = typeof first === 'string' ? first : ((first as { text?: string } | undefined)?.text ?? '');
  const isCommit = text === 'commit' && marked.has(this);
  const isIt = text.includes(place.text);
  if (isIt) marked.add(this);
  else if (text === 'begin') marked.delete(this);
  dieIf((isIt && place.when === 'before') || (isCommit && place.when === 'before commit'));
  const isAfter = (isIt && place.when === 'after') || (isCommit && place.when === 'after commit');
  return isAfter ? thenDie.apply(this, args) : original.apply(this, args);
} as typeof pg.Client.prototype.query;
