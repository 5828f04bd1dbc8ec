import type { Child } from './start-child.ts';

const LONGEST_LINE = 300;

/** The error of a child that ended where it should have begun to work. */
export function endedAtOnce(child: Child, how: string): Error {
  const words = child.lastLines().map((line) => line.slice(0, LONGEST_LINE));
  return new Error(`${child.name} ended at once (${how}). Its last words:\n${words.join('\n')}`);
}
