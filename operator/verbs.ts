import type { Command } from 'commander';
import { z } from 'zod';
import type { Mode } from '../domain/mode.ts';
import { read, WholeNumber } from './flag-values.ts';
import type { Output } from './render.ts';
import type { Session } from './session.ts';

/** What a noun builds its verbs with. */
export interface Verbs {
  session: Session;
  /** Turns a verb's work into an action for commander that prints the work's answer, as text or as JSON. */
  verb<A extends unknown[]>(work: (...args: A) => Promise<Output>): (...args: A) => Promise<void>;
  /** Help text with complete command lines. */
  examples(...lines: string[]): string;
  /** Prints what is too long for one answer, and waits until it is read. @returns false if nobody reads any more */
  out(text: string): Promise<boolean>;
  /** Prints to standard error. */
  err(text: string): void;
  /** Asks the person at the terminal; null if there is nobody to ask. */
  confirm(question: string): Promise<boolean | null>;
  resolveWaitMs: number;
  reconcileGraceMs: number;
}

/** The workflow of something that was made, with its status. In test mode there is none. */
export const workflowOf = async (
  session: Session,
  { mode, workflow_id }: { mode: Mode; workflow_id: string },
): Promise<{ workflow_id: string | null; workflow_status: string | null }> =>
  mode === 'test'
    ? { workflow_id: null, workflow_status: null }
    : { workflow_id, workflow_status: await session.workflowStatus(workflow_id) };

const DEFAULT_LIMIT = 100;

/** Gives a verb that uses {@link listNewest} its flag `--limit`. */
export const withLimit = (verb: Command): Command =>
  verb.option(
    '--limit <number>',
    `list at most this many (default: ${DEFAULT_LIMIT})`,
    read(WholeNumber(z.number().min(1).max(10_000))),
  );

/**
 * A list that may be long, cut off at `--limit`.
 * @param list.limit the flag's value
 * @param list.readNewest reads at most `atMost`, newest first
 */
export async function listNewest(
  err: Verbs['err'],
  list: {
    noun: string;
    columns: readonly string[];
    limit: number | undefined;
    readNewest(atMost: number): Promise<{ id: string }[]>;
    /** Whether it has the flag `--before`. */
    isPaged?: boolean;
  },
): Promise<Output> {
  const { noun, columns, limit = DEFAULT_LIMIT, readNewest, isPaged = false } = list;
  const found = await readNewest(limit + 1);
  const last = found[limit - 1];
  if (found.length > limit)
    err(
      `There are more than ${limit}: narrow the search, or raise --limit` +
        (isPaged ? `; --before ${last?.id} shows the next ones.\n` : '.\n'),
    );
  return {
    value: found.slice(0, limit),
    columns,
    note: found.length === 0 ? 'Nothing found.' : `See all of one with "operator ${noun} show ID".`,
  };
}
