import { query, type Sql } from '../../db/sql.ts';
import type { OperationKind } from './take-operation.ts';

export type OperationState = 'unknown' | 'accepted' | 'succeeded' | 'declined' | 'failed';

/** The state of an operation by the database's clock, so that it is the same in every process and after every crash. */
export async function readOperation(em: Sql, kind: OperationKind, token: string): Promise<OperationState> {
  const [row] = await query<{ state: OperationState }>(
    em,
    `SELECT CASE WHEN completes_at <= clock_timestamp() THEN outcome ELSE 'accepted' END AS state
       FROM simulated_network.operation WHERE token = $1 AND kind = $2 AND taken_at IS NOT NULL`,
    [token, kind],
  );
  return row?.state ?? 'unknown';
}
