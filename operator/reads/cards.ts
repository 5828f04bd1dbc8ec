import { unknownId } from '../../commands/refusal.ts';
import { CARD_COLUMNS, of } from '../../db/columns.ts';
import type { Orm } from '../../db/orm.ts';
import { readStatement } from '../../db/sql.ts';
import type { CardStatus, StatusChangeOperation } from '../../domain/card-status.ts';
import type { Fee } from '../../domain/fees.ts';
import type { Mode } from '../../domain/mode.ts';
import { changeCardStatusWorkflowId, issueCardWorkflowId } from '../../workflows/messages.ts';

/** A card with its partner and its money, but without the cardholder's data. */
export interface OperatorCard {
  id: string;
  object: 'card';
  partner_id: string;
  partner_name: string;
  mode: Mode;
  status: CardStatus;
  balance: number;
  currency: 'USD';
  /** Cents that the issuance loads onto the card. */
  funding: number;
  fees: Fee[];
  external_ref: string;
  product_code: string;
  network: string;
  network_card_id: string | null;
  last4: string | null;
  exp_month: number | null;
  exp_year: number | null;
  failure_code: string | null;
  /** When the issuance's deadline passed without an answer from the network. */
  overdue_since: string | null;
  /** The freeze, unfreeze or block that the network is being asked for. */
  status_change: { operation: StatusChangeOperation; since: string; workflow_id: string } | null;
  created: string;
  workflow_id: string;
}

/** @throws Refusal if there is no such card. */
export async function readCard(orm: Orm, cardId: string): Promise<OperatorCard> {
  const card = await findCard(orm, cardId);
  if (card === null) throw unknownId('card', cardId, 'its id is in GET /v1/cards of the partner');
  return card;
}

export async function findCard(orm: Orm, cardId: string): Promise<OperatorCard | null> {
  const [row] = await cardOf(orm.em.fork(), { cardId });
  if (row === undefined) return null;
  return {
    id: row.id,
    object: 'card',
    partner_id: row.partner_id,
    partner_name: row.partner_name,
    mode: row.mode,
    status: row.status,
    balance: Number(row.balance_cents ?? 0),
    currency: 'USD',
    funding: Number(row.funding_cents),
    fees: row.fees,
    external_ref: row.external_ref,
    product_code: row.product_code,
    network: row.network,
    network_card_id: row.network_card_id,
    last4: row.last4,
    exp_month: row.exp_month,
    exp_year: row.exp_year,
    failure_code: row.failure_code,
    overdue_since: row.overdue_since === null ? null : new Date(row.overdue_since).toISOString(),
    status_change:
      row.change_id === null
        ? null
        : {
            operation: row.change_operation as StatusChangeOperation,
            since: new Date(row.change_since as string).toISOString(),
            workflow_id: changeCardStatusWorkflowId(row.id, row.change_id),
          },
    created: new Date(row.created_at).toISOString(),
    workflow_id: issueCardWorkflowId(row.id),
  };
}

const cardOf = readStatement((db, { cardId }: { cardId: string }) =>
  db
    .selectFrom('card as c')
    .innerJoin('partner as p', 'p.id', 'c.partner_id')
    .leftJoin('ledger.account as a', 'a.card_id', 'c.id')
    .leftJoin('idempotency_claim as s', 's.id', 'c.status_change_claim_id')
    .select(of('c', CARD_COLUMNS))
    .select(['p.name as partner_name', 'a.posted as balance_cents'])
    .select(['s.id as change_id', 's.operation as change_operation', 's.created_at as change_since'])
    .where('c.id', '=', cardId),
);
