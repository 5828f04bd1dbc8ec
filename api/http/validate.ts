import type { IncomingMessage } from 'node:http';
import type { z } from 'zod';
import { ApiError, type FieldIssue, MAX_ISSUES } from '../../domain/api-error.ts';
import { isPercentEncoded } from '../../domain/percent-encoding.ts';

export interface Checked<T> {
  /** Meaningful only if there are no issues. */
  value: T;
  issues: FieldIssue[];
}

/** @param where the value's name, for issues about the value as a whole */
export function validate<T>(schema: z.ZodType<T>, value: unknown, where: 'body' | 'query'): Checked<T> {
  const parsed = schema.safeParse(value, { reportInput: true, error: wordIssue });
  if (parsed.success) return { value: parsed.data, issues: [] };
  return {
    value: undefined as T,
    issues: parsed.error.issues.flatMap((issue) => describe(issue, where)),
  };
}

function describe(issue: z.core.$ZodIssue, where: string): FieldIssue[] {
  if (issue.code === 'unrecognized_keys') {
    const what = where === 'body' ? 'field' : 'parameter';
    return issue.keys.slice(0, MAX_ISSUES).map((key) => {
      const path = shownPath([...issue.path, key]);
      return { path, message: `${path} is not a ${what} of this request` };
    });
  }
  if (issue.code === 'invalid_key') {
    const path = shownPath(issue.path.slice(0, -1)) || where;
    return [{ path, message: `a key of ${path} ${issue.issues[0]?.message ?? 'is not allowed'}` }];
  }
  const path = shownPath(issue.path) || where;
  const problem = issue.input === undefined ? 'is required' : issue.message;
  return [{ path, message: `${path} ${problem}` }];
}

const MAX_NAME_LENGTH = 100;

/** A client may have made the names up, and a response is not as long as they are. */
const shownPath = (path: readonly PropertyKey[]): string =>
  path.map((name) => shortName(String(name))).join('.');

const shortName = (name: string): string =>
  name.length > MAX_NAME_LENGTH ? `${name.slice(0, MAX_NAME_LENGTH)}…` : name;

const NOUNS: Readonly<Record<string, string>> = {
  object: 'a JSON object',
  record: 'a JSON object',
  string: 'a string',
  int: 'an integer',
  boolean: 'true or false',
};

/** What is wrong, phrased to follow the field's name. A schema's own message takes precedence. */
function wordIssue(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.code === 'invalid_type') return `must be ${NOUNS[issue.expected] ?? issue.expected}`;
  if (issue.code === 'invalid_value') return `must be one of ${issue.values.join(', ')}`;
  if (issue.code === 'too_big') return `must be at most ${issue.maximum} characters long`;
  return undefined;
}

/**
 * The query as an object, with an issue for each parameter that was sent twice. Percent-encoding that is not
 * UTF-8 is an issue too, since decoding it leniently would change the text.
 */
export function parseQuery(querystring: string): Checked<Record<string, string>> {
  const value: Record<string, string> = Object.create(null);
  const issues: FieldIssue[] = [];
  if (!isPercentEncoded(querystring)) {
    return { value, issues: [{ path: 'query', message: 'query must be percent-encoded UTF-8' }] };
  }
  for (const [name, text] of new URLSearchParams(querystring)) {
    if (name in value)
      issues.push({ path: shortName(name), message: `${shortName(name)} must be sent once` });
    value[name] = text;
  }
  return { value, issues };
}

/** How often a header was sent; Node keeps only one of some that are repeated. */
export function timesSent(req: IncomingMessage, name: string): number {
  let times = 0;
  for (let i = 0; i < req.rawHeaders.length; i += 2) {
    if (req.rawHeaders[i]?.toLowerCase() === name) times += 1;
  }
  return times;
}

/**
 * Refuses a header that was sent twice, even if the route does not use it: nobody knows which one was meant
 * (docs/partners/errors.md).
 * @throws ApiError `idempotency_key_invalid`, `validation_failed`
 */
export function refuseRepeated(req: IncomingMessage): void {
  if (timesSent(req, 'idempotency-key') > 1) throw keyError('idempotency_key_invalid');
  if (timesSent(req, 'content-type') > 1)
    throw ApiError.ofField('Content-Type', 'Content-Type must be sent once');
}

/**
 * The Idempotency-Key of a request (docs/partners/idempotency.md). An empty one counts as missing. The result
 * is empty if the key is missing and not required.
 * @throws ApiError `idempotency_key_missing`, `idempotency_key_invalid`
 */
export function readIdempotencyKey(req: IncomingMessage, use: 'required' | 'accepted' | undefined): string {
  const key = use === undefined ? '' : req.headers['idempotency-key'];
  if (typeof key !== 'string' || key === '') {
    if (use === 'required') throw keyError('idempotency_key_missing');
    return '';
  }
  if (!/^[\x20-\x7e]{1,255}$/.test(key)) throw keyError('idempotency_key_invalid');
  return key;
}

/** The error for a missing or malformed Idempotency-Key. */
export function keyError(code: 'idempotency_key_missing' | 'idempotency_key_invalid'): ApiError {
  const message = 'Idempotency-Key must be sent once and have 1 to 255 printable ASCII characters';
  return new ApiError(code, { issues: [{ path: 'Idempotency-Key', message }] });
}
