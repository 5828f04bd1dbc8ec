import { unknownId } from '../../commands/refusal.ts';
import { of, TOPUP_COLUMNS } from '../../db/columns.ts';
import type { Orm } from '../../db/orm.ts';
import { readStatement } from '../../db/sql.ts';
import { presentTopUp, type TopUpResource } from '../../resources/topup.ts';
import { topUpCardWorkflowId } from '../../workflows/messages.ts';

/** A top-up as the partner sees it, with its partner and its workflow. */
export interface OperatorTopUp extends TopUpResource {
  partner_id: string;
  partner_name: string;
  /** When its deadline passed without an answer from the network. */
  overdue_since: string | null;
  workflow_id: string;
}

/** @throws Refusal if there is no such top-up. */
export async function readTopUp(orm: Orm, topUpId: string): Promise<OperatorTopUp> {
  const topUp = await findTopUp(orm, topUpId);
  if (topUp === null) {
    throw unknownId('topup', topUpId, 'its id is in GET /v1/cards/{cardId}/topups of the partner');
  }
  return topUp;
}

export async function findTopUp(orm: Orm, topUpId: string): Promise<OperatorTopUp | null> {
  const [row] = await topUpOf(orm.em.fork(), { topUpId });
  if (row === undefined) return null;
  return {
    ...presentTopUp(row, Number(row.balance_cents ?? 0)),
    partner_id: row.partner_id,
    partner_name: row.partner_name,
    overdue_since: row.overdue_since === null ? null : new Date(row.overdue_since).toISOString(),
    workflow_id: topUpCardWorkflowId(row.id),
  };
}

const topUpOf = readStatement((db, { topUpId }: { topUpId: string }) =>
  db
    .selectFrom('topup as t')
    .innerJoin('partner as p', 'p.id', 't.partner_id')
    .leftJoin('ledger.account as a', 'a.card_id', 't.card_id')
    .select(of('t', TOPUP_COLUMNS))
    .select(['p.name as partner_name', 'a.posted as balance_cents'])
    .where('t.id', '=', topUpId),
);
