import pg from 'pg';
import type { TestStack } from '../../support/stack.ts';

/** Every row of every table of ours as one JSON line each, by table: to see that nothing was written, or what was. */
export async function tableContents(stack: TestStack): Promise<Record<string, string[]>> {
  const owner = new pg.Client(stack.config.databaseUrl);
  await owner.connect();
  try {
    const tables = await owner.query<{ name: string }>(
      `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables
       WHERE schemaname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1`,
    );
    const contents: Record<string, string[]> = {};
    for (const { name } of tables.rows) {
      const { rows } = await owner.query<{ line: string }>(
        `SELECT row_to_json(t)::text AS line FROM ${name} t ORDER BY 1`,
      );
      contents[name] = rows.map((row) => row.line);
    }
    return contents;
  } finally {
    await owner.end();
  }
}
