import type { z } from 'zod';
import type { FieldIssue } from '../../domain/api-error.ts';

export interface Checked<T> {
  /** Only of use where there are no issues. */
  value: T;
  issues: FieldIssue[];
}

/** @param where what the value is called when all of it is wrong */
export function validate<T>(schema: z.ZodType<T>, value: unknown, where: 'body' | 'query'): Checked<T> {
  const parsed = schema.safeParse(value, { reportInput: true, error: wordingOf });
  if (parsed.success) return { value: parsed.data, issues: [] };
  return {
    value: undefined as T,
    issues: parsed.error.issues.flatMap((issue) => describe(issue, where)),
  };
}

function describe(issue: z.core.$ZodIssue, where: string): FieldIssue[] {
  if (issue.code === 'unrecognized_keys') {
    const what = where === 'body' ? 'field' : 'parameter';
    return issue.keys.map((key) => ({ path: key, message: `${key} is not a ${what} of this request` }));
  }
  const path = issue.path.join('.') || where;
  const problem = issue.input === undefined ? 'is required' : issue.message;
  return [{ path, message: `${path} ${problem}` }];
}

const NOUNS: Readonly<Record<string, string>> = {
  object: 'a JSON object',
  string: 'a string',
  int: 'an integer',
  boolean: 'true or false',
};

/** What is wrong, to follow the field's name, if its schema has no message of its own. */
function wordingOf(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.code === 'invalid_type') return `must be ${NOUNS[issue.expected] ?? issue.expected}`;
  if (issue.code === 'invalid_value') return `must be one of ${issue.values.join(', ')}`;
  if (issue.code === 'too_big') return `must be at most ${issue.maximum} characters long`;
  return undefined;
}
