import assert from 'node:assert/strict';
import pg from 'pg';
import type { Answer } from '../stack.ts';

export type When = 'before' | 'after';

/** When a COMMIT loses its connection, and whether it has taken place. */
export const CUTS: [When, boolean][] = [
  ['before', false],
  ['after', true],
];

/** Cuts connections of this process at COMMITs, so that nobody hears their result. */
export function cutCommits() {
  const armed = new Map<string, When>();
  const marked = new WeakMap<pg.Client, string>();
  const original = pg.Client.prototype.query as (...args: unknown[]) => unknown;

  async function commit(this: pg.Client, parameter: string, args: unknown[]): Promise<unknown> {
    const when = armed.get(parameter);
    armed.delete(parameter);
    if (when === 'after') await original.apply(this, args);
    (this as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
    throw new Error('Connection terminated unexpectedly');
  }

  pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]): unknown {
    if (armed.size === 0) return original.apply(this, args);
    const [text] = args;
    if (text === 'begin') marked.delete(this);
    const parameters = [args[1], (text as { values?: unknown } | null)?.values].flat(2).map(String);
    for (const parameter of armed.keys()) {
      if (parameters.some((one) => one.includes(parameter))) marked.set(this, parameter);
    }
    const parameter = marked.get(this);
    const isCut = text === 'commit' && parameter !== undefined && armed.has(parameter);
    return isCut ? commit.call(this, parameter, args) : original.apply(this, args);
  } as typeof pg.Client.prototype.query;

  return {
    /** The next transaction of this process that gets this text as a parameter loses its connection at its COMMIT. */
    arm: (when: When, parameter: string) => void armed.set(parameter, when),
    /** Fails if what was armed was not cut, and leaves `pg` as it was. */
    undo() {
      pg.Client.prototype.query = original as typeof pg.Client.prototype.query;
      assert.deepEqual([...armed.keys()], [], 'no transaction had this parameter');
    },
  };
}

export type Cuts = ReturnType<typeof cutCommits>;

/** A request that has one COMMIT. */
export interface Command {
  send(): Promise<Answer>;
  /** A parameter that only its transaction has. */
  parameter: string;
  /** The process itself tries it again, so that whoever sends it notices nothing. */
  isTriedAgain?: boolean;
  /** Everything that it can change. */
  left(): Promise<unknown>;
  /** What is left once it has taken place. */
  leaves: unknown;
}

/**
 * Sends it while its connection is cut before its COMMIT, then after it, and twice more. It has to take place once, and a
 * repetition gets its response.
 * @returns the response
 */
export async function assertTakesPlaceOnce(cuts: Cuts, command: Command): Promise<Answer> {
  const { send, parameter, isTriedAgain = false, left, leaves } = command;
  const before = await left();
  for (const [when, hasHappened] of CUTS) {
    cuts.arm(when, parameter);
    const cut = await send();
    const expected = isTriedAgain ? [200, undefined] : [503, 'unavailable'];
    assert.deepEqual([cut.status, cut.json.error?.code], expected, cut.text);
    assert.deepEqual(await left(), hasHappened || isTriedAgain ? leaves : before);
  }
  const answer = await send();
  assert.ok(answer.status === 200 || answer.status === 201, answer.text);
  const again = await send();
  assert.deepEqual([again.status, again.text], [answer.status, answer.text]);
  assert.deepEqual(await left(), leaves);
  return answer;
}

/** The same with a request that has an Idempotency-Key, whose repetitions say that they are. */
export async function assertReplays(cuts: Cuts, command: Command): Promise<Answer> {
  const answer = await assertTakesPlaceOnce(cuts, command);
  assert.equal(answer.headers.get('idempotent-replayed'), 'true');
  return answer;
}
