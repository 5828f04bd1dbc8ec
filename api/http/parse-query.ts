import type { FieldIssue } from '../../domain/api-error.ts';
import type { Checked } from './validate.ts';

/**
 * The query as an object, with an issue for each parameter that is there twice. Percent-encoding that is no UTF-8 is an
 * issue as well: decoded leniently it would become another text than was meant.
 */
export function parseQuery(querystring: string): Checked<Record<string, string>> {
  const value: Record<string, string> = Object.create(null);
  const issues: FieldIssue[] = [];
  if (!isDecodable(querystring)) {
    return { value, issues: [{ path: 'query', message: 'query must be percent-encoded UTF-8' }] };
  }
  for (const [name, text] of new URLSearchParams(querystring)) {
    if (name in value) issues.push({ path: name, message: `${name} must be sent once` });
    value[name] = text;
  }
  return { value, issues };
}

function isDecodable(querystring: string): boolean {
  try {
    decodeURIComponent(querystring);
    return true;
  } catch (error) {
    if (error instanceof URIError) return false;
    throw error;
  }
}
