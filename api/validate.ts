import type { z } from 'zod';
import { ApiError, type FieldIssue } from '../domain/api-error.ts';

const MOST_ISSUES = 100;

/**
 * @param where what the value is called when all of it is wrong
 * @throws ApiError `validation_failed` listing every invalid field
 */
export function validate<T>(schema: z.ZodType<T>, value: unknown, where: 'body' | 'query'): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw ApiError.ofFields(
    parsed.error.issues.flatMap((issue) => describe(issue, where)).slice(0, MOST_ISSUES),
  );
}

function describe(issue: z.core.$ZodIssue, where: string): FieldIssue[] {
  if (issue.code === 'unrecognized_keys') {
    const what = where === 'body' ? 'field' : 'parameter';
    return issue.keys.map((key) => ({ path: key, message: `${key}: there is no such ${what}` }));
  }
  const path = issue.path.join('.') || where;
  const missing = issue.code === 'invalid_type' && issue.input === undefined;
  return [{ path, message: `${path} ${missing ? 'is required' : lowered(issue.message)}` }];
}

/** "Invalid input: expected string" reads on from the field's name as "is invalid: expected string". */
function lowered(message: string): string {
  return message.replace(/^Invalid (input|option): /, 'is invalid: ');
}

/** The query as an object. @throws ApiError `validation_failed` naming a parameter that is there twice */
export function parseQuery(querystring: string): Record<string, string> {
  const query: Record<string, string> = Object.create(null);
  for (const [name, value] of new URLSearchParams(querystring)) {
    if (name in query) throw ApiError.ofField(name, `${name} must be sent once`);
    query[name] = value;
  }
  return { ...query };
}
