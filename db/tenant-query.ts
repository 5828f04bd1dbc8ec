import type { Tenant } from '../domain/tenant.ts';
import { query, type Sql } from './sql.ts';

/**
 * Reads one account's rows in one mode. `text` must say `partner_id = $1 AND mode = $2` (with or without a table's
 * alias); its own values start at `$3`. A statement that forgot to is refused before it runs.
 */
export function tenantQuery<Row>(
  em: Sql,
  tenant: Tenant,
  text: string,
  values: readonly unknown[] = [],
): Promise<Row[]> {
  if (!/\bpartner_id = \$1 AND (\w+\.)?mode = \$2\b/.test(text)) {
    throw new Error('a tenant query must filter by "partner_id = $1 AND mode = $2"');
  }
  return query<Row>(em, text, [tenant.partnerId, tenant.mode, ...values]);
}
