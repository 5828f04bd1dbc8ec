import type { Sql } from '../../db/sql.ts';
import type { OperationFailed, TopUpAnswer } from '../card-network/card-network.ts';
import { readOperation } from './read-operation.ts';

export type TopUpState = TopUpAnswer | OperationFailed | { status: 'unknown' };

export async function readTopUp(em: Sql, token: string): Promise<TopUpState> {
  const status = await readOperation(em, 'card.topup', token);
  switch (status) {
    case 'declined':
      return { status, reason: 'declined_by_network' };
    case 'failed':
      return { status, reason: 'failed_at_network' };
    default:
      return { status };
  }
}
