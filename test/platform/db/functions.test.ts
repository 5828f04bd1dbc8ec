import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import pg from 'pg';
import { createTestDatabase, ownerUrlOf } from '../../support/postgres.ts';

const FOLDER = new URL('../../../platform/db/functions/', import.meta.url);

describe("platform/db/functions, which has the database's functions to read,", () => {
  let client: pg.Client;
  beforeEach(async () => {
    client = new pg.Client(ownerUrlOf(await createTestDatabase()));
    await client.connect();
  });
  afterEach(() => client.end());

  it('has one file for each function, which begins with what the function is for', async () => {
    const files = (await readdir(FOLDER)).sort();
    const names = Object.keys(await functionsOf(client));
    assert.deepEqual(
      files,
      names.map((name) => `${name}.sql`),
    );
    for (const file of files) {
      assert.match(
        await readFile(new URL(file, FOLDER), 'utf8'),
        /^(-- .+\n)+CREATE OR REPLACE FUNCTION \S+\(/,
        file,
      );
    }
  });

  it('has the functions as the migrations make them', async () => {
    const migrated = await functionsOf(client);
    await client.query('BEGIN');
    for (const name of Object.keys(migrated)) {
      await client.query(await readFile(new URL(`${name}.sql`, FOLDER), 'utf8'));
    }
    assert.deepEqual(await functionsOf(client), migrated);
  });
});

/** Each function of our schemas, with its whole definition, by the name of its file. */
async function functionsOf(client: pg.Client): Promise<Record<string, string>> {
  const { rows } = await client.query<{ name: string; definition: string }>(`
    SELECT CASE n.nspname WHEN 'public' THEN '' ELSE n.nspname || '.' END || p.proname AS name,
      pg_get_functiondef(p.oid) AS definition
    FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
    WHERE n.nspname IN ('public', 'ledger', 'simulated_network')`);
  return Object.fromEntries(rows.map(({ name, definition }) => [name, definition] as const).sort());
}
