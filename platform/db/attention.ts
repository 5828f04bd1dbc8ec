import { sql } from 'kysely';
import type { AttentionItem, UnfinishedItem } from '../monitoring/attention-item.ts';
import { readLoggedValues } from './logged-values.ts';
import type { Orm } from './orm.ts';
import { readStatement } from './sql.ts';

/** Tables with rows for which no worker had made a partition: they are in the default one. */
export async function readWithoutPartition(orm: Orm): Promise<UnfinishedItem[]> {
  const rows = await withoutPartition(orm.em.fork(), {});
  return rows.map(({ name, since }) => ({
    kind: 'default_partition',
    id: name,
    partner_id: null,
    mode: null,
    since: new Date(since).toISOString(),
    reason: `rows of ${name} are in its default partition, since no worker had made one for them`,
    worker: {
      queue: null,
      absent: 'check that a worker is running',
      present: 'check that no worker\'s log says "making partitions failed", and the clocks',
    },
    command: `psql --command "SELECT * FROM rows_without_partition()"`,
    or_command: null,
    workflow_id: null,
  }));
}

const withoutPartition = readStatement(
  () => sql<{ name: string; since: string }>`SELECT name, since FROM rows_without_partition()`,
);

/** Settings with which PostgreSQL writes values of rows into its log. */
export async function readServerLog(orm: Orm): Promise<AttentionItem[]> {
  const reason = await readLoggedValues(orm.em.fork());
  if (reason === null) return [];
  return [
    {
      kind: 'server_log',
      id: 'postgresql',
      // Nobody knows since when.
      since: new Date().toISOString(),
      partner_id: null,
      mode: null,
      reason,
      command: `psql --command "ALTER ROLE … SET log_parameter_max_length = 0" --command "ALTER ROLE … SET log_error_verbosity = terse"`,
      or_command: null,
      workflow_id: null,
    },
  ];
}
