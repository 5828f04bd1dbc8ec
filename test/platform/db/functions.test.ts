import assert from 'node:assert/strict';
import { functionFiles } from '../../../platform/db/migrate.ts';
import { asOwner, createTestDatabase } from '../../support/postgres.ts';

describe("platform/db/functions, which is the source of the database's functions,", () => {
  it('has one file for each function, which begins with what the function is for', async () => {
    const files = await functionFiles();
    const functions = await asOwner<{ name: string }>(
      await createTestDatabase(),
      `SELECT CASE n.nspname WHEN 'public' THEN '' ELSE n.nspname || '.' END || p.proname AS name
       FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
       WHERE n.nspname IN ('public', 'ledger', 'simulated_network')`,
    );
    assert.deepEqual(files.map(({ name }) => name).sort(), functions.map(({ name }) => name).sort());
    for (const { name, text } of files)
      assert.match(text, /^(-- .+\n)+CREATE OR REPLACE FUNCTION \S+\(/, name);
  });
});
