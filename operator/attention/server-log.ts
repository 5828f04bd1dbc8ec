import { readLoggedValues } from '../../db/logged-values.ts';
import type { Orm } from '../../db/orm.ts';
import { type AttentionItem, NO_CHOICE } from './attention-item.ts';

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
      reason,
      command: `psql --command "ALTER ROLE … SET log_parameter_max_length = 0" --command "ALTER ROLE … SET log_error_verbosity = terse"`,
      ...NO_CHOICE,
      workflow_id: null,
    },
  ];
}
