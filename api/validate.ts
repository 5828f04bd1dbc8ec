import type { z } from 'zod';
import type { FieldIssue } from '../domain/api-error.ts';

export interface Checked<T> {
  /** Only of use where there are no issues. */
  value: T;
  issues: FieldIssue[];
}

/** @param where what the value is called when all of it is wrong */
export function validate<T>(schema: z.ZodType<T>, value: unknown, where: 'body' | 'query'): Checked<T> {
  const parsed = schema.safeParse(value, { reportInput: true });
  if (parsed.success) return { value: parsed.data, issues: [] };
  return {
    value: undefined as T,
    issues: parsed.error.issues.flatMap((issue) => describe(issue, where)),
  };
}

function describe(issue: z.core.$ZodIssue, where: string): FieldIssue[] {
  if (issue.code === 'unrecognized_keys') {
    const what = where === 'body' ? 'field' : 'parameter';
    return issue.keys.map((key) => ({ path: key, message: `${key}: there is no such ${what}` }));
  }
  const path = issue.path.join('.') || where;
  const problem = issue.input === undefined ? 'is required' : lowered(issue.message);
  return [{ path, message: `${path} ${problem}` }];
}

/** "Invalid input: expected string" reads on from the field's name as "is invalid: expected string". */
function lowered(message: string): string {
  return message.replace(/^Invalid (input|option): /, 'is invalid: ');
}
