import assert from 'node:assert/strict';
import { ConfigurationError } from '../../platform/config/read-environment.ts';
import { readConfig } from '../../platform/config/service.ts';

/** The problems as the process would print them, one a line. */
export function problemsOf(
  env: Record<string, string>,
  read: (env: NodeJS.ProcessEnv) => unknown = readConfig,
): string[] {
  try {
    read(env);
  } catch (error) {
    assert.ok(error instanceof ConfigurationError, String(error));
    const [head, ...problems] = error.message.split('\n  ');
    assert.equal(head, 'The configuration is not valid. Correct these environment variables:');
    return problems;
  }
  return [];
}
