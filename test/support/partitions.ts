import type pg from 'pg';

/** Puts the first partition of a table, which has whatever is older than the migration, into several. */
export async function splitFirst(owner: pg.Client, table: string, bounds: readonly string[]): Promise<void> {
  const first = `${table}_first`;
  const { rows } = await owner.query<{ last: string }>(`SELECT partition_bound('TO', $1::regclass) AS last`, [
    first,
  ]);
  await owner.query(`DROP TABLE ${first}`);
  const ends = [...bounds, rows[0]?.last ?? ''];
  for (const [i, end] of ends.entries()) {
    const from = i === 0 ? 'MINVALUE' : owner.escapeLiteral(ends[i - 1] ?? '');
    await owner.query(`CREATE TABLE ${first}${i} (LIKE ${table}_default INCLUDING ALL)`);
    await owner.query(
      `ALTER TABLE ${table} ATTACH PARTITION ${first}${i} FOR VALUES FROM (${from}) TO (${owner.escapeLiteral(end)})`,
    );
  }
}

/** The names of a table's partitions, the default one left out. */
export async function partitionsOf(owner: pg.Client, table: string): Promise<string[]> {
  const { rows } = await owner.query<{ name: string }>(
    `SELECT c.relname AS name FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
     WHERE i.inhparent = $1::regclass AND c.relname NOT LIKE '%default' ORDER BY partition_bound('TO', c.oid)`,
    [table],
  );
  return rows.map(({ name }) => name);
}
