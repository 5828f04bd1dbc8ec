import type { TestStack } from '../stack.ts';
import { asOwner } from './as-owner.ts';

/** Every row of every table of ours as one JSON line each, by table: to see that nothing was written, or what was. */
export async function tableContents(stack: TestStack): Promise<Record<string, string[]>> {
  const tables = await asOwner<{ name: string }>(
    stack,
    `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables
     WHERE schemaname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1`,
  );
  const contents: Record<string, string[]> = {};
  for (const { name } of tables) {
    const rows = await asOwner<{ line: string }>(
      stack,
      `SELECT row_to_json(t)::text AS line FROM ${name} t ORDER BY 1`,
    );
    contents[name] = rows.map((row) => row.line);
  }
  return contents;
}

/** A row of {@link tableContents} with what is bytea, which comes as hex, read as text. */
export function decodeBytes(row: string): string {
  return row.replace(/\\\\x([0-9a-f]+)/g, (_, hex) => Buffer.from(hex, 'hex').toString('latin1'));
}
