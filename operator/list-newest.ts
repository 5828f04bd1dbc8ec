import type { Command } from 'commander';
import { z } from 'zod';
import type { Answer } from './answer.ts';
import { read, WholeNumber } from './flag-values.ts';

const USUAL = 100;

/** `--limit`, of a verb that lists the newest. */
export const withLimit = (verb: Command): Command =>
  verb.option(
    '--limit <number>',
    `list at most this many (default: ${USUAL})`,
    read(WholeNumber(z.number().min(1).max(10_000))),
  );

/**
 * The newest of what can be many.
 * @param list.limit as the flag gave it
 * @param list.readNewest gets at most so many, newest first
 */
export async function listNewest(
  err: (text: string) => void,
  list: {
    noun: string;
    columns: readonly string[];
    limit: number | undefined;
    readNewest(atMost: number): Promise<object[]>;
  },
): Promise<Answer> {
  const { noun, columns, limit = USUAL, readNewest } = list;
  const found = await readNewest(limit + 1);
  if (found.length > limit) err(`There are more than ${limit}: narrow the search, or raise --limit.\n`);
  return {
    value: found.slice(0, limit),
    columns,
    note: found.length === 0 ? 'Nothing found.' : `See all of one with "operator ${noun} show ID".`,
  };
}
