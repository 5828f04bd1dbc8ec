import type { Row } from '../../../platform/db/entities.ts';
import { query } from '../../../platform/db/sql.ts';
import type { TestStack } from '../stack.ts';

/** What is kept of the network's transactions with these ids, oldest first. */
export function keptRows(
  stack: TestStack,
  ...networkTransactionIds: unknown[]
): Promise<Row<'network_message'>[]> {
  return query(stack.orm.em.fork(), 'SELECT * FROM network_message WHERE message_id = ANY ($1) ORDER BY id', [
    networkTransactionIds,
  ]);
}
