import { sql } from 'kysely';
import type { Orm } from '../../db/orm.ts';
import { readStatement } from '../../db/sql.ts';
import { NO_CHOICE, type UnfinishedItem } from './attention-item.ts';

/** Tables with rows for which no worker had made a partition: they are in the default one. */
export async function readWithoutPartition(orm: Orm): Promise<UnfinishedItem[]> {
  const rows = await withoutPartition(orm.em.fork(), {});
  return rows.map(({ name, since }) => ({
    kind: 'default_partition',
    id: name,
    partner_id: null,
    since: new Date(since).toISOString(),
    reason: `rows of ${name} are in its default partition, since no worker had made one for them`,
    worker: {
      queue: null,
      absent: 'check that a worker is running',
      present: 'check that no worker\'s log says "making partitions failed", and the clocks',
    },
    command: `psql --command "SELECT * FROM rows_without_partition()"`,
    ...NO_CHOICE,
    workflow_id: null,
  }));
}

const withoutPartition = readStatement(
  () => sql<{ name: string; since: string }>`SELECT name, since FROM rows_without_partition()`,
);
