import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runtimeImports } from '../../dev/imports/find-violations.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** What starts PostgreSQL, Temporal, or both. */
const STARTERS = [
  'test/support/postgres.ts',
  'test/support/temporal.ts',
  'test/support/dev/stack-process.ts',
  'dev/postgres/embedded-postgres.ts',
].map((path) => join(ROOT, path));

const known = new Map<string, boolean>(STARTERS.map((path) => [path, true]));

/** Whether a test file imports, however far down, what starts a server. */
function needsServers(file: string): boolean {
  const path = resolve(file);
  const before = known.get(path);
  if (before !== undefined) return before;
  // While it is looked at, so that a cycle ends.
  known.set(path, false);
  const needs = importsOf(path).some(needsServers);
  known.set(path, needs);
  return needs;
}

function importsOf(path: string): string[] {
  if (!path.endsWith('.ts') || relative(ROOT, path).split(sep).includes('node_modules')) return [];
  return runtimeImports(readFileSync(path, 'utf8'))
    .filter((specifier) => specifier.startsWith('.'))
    .map((specifier) => join(dirname(path), specifier));
}

describe('test/unit', () => {
  it('contains no test that imports, directly or not, what starts PostgreSQL or Temporal', () => {
    const files = globSync('test/unit/**/*.test.ts', { cwd: ROOT });
    assert.ok(files.length > 0);
    assert.deepEqual(
      files.filter((file) => needsServers(join(ROOT, file))),
      [],
    );
  });

  it('is told apart from tests that do import it', () => {
    assert.ok(needsServers(join(ROOT, 'test/cards/live-operations.test.ts')));
  });
});
