import { unknownId } from '../../commands/refusal.ts';
import { cardColumns } from '../../db/columns.ts';
import type { Orm } from '../../db/orm.ts';
import { query } from '../../db/sql.ts';
import type { CardRow } from '../../domain/card-resource.ts';
import type { CardStatus } from '../../domain/card-status.ts';
import type { Fee } from '../../domain/fees.ts';
import type { Mode } from '../../domain/mode.ts';
import type { StatusChangeOperation } from '../../domain/status-change.ts';
import { changeCardStatusWorkflowId, issueCardWorkflowId } from '../../workflows/messages.ts';

/** A card as operators see it: whose it is and what became of its money; who holds it is left out. */
export interface OperatorCard {
  id: string;
  object: 'card';
  partner_id: string;
  partner_name: string;
  mode: Mode;
  status: CardStatus;
  balance: number;
  currency: 'USD';
  /** Cents that the issuance puts on the card. */
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
  /** Since when its issuance waits for an operator. */
  overdue_since: string | null;
  /** The freeze, unfreeze or block that the network is being asked for. */
  status_change: { operation: StatusChangeOperation; since: string; workflow_id: string } | null;
  created: string;
  workflow_id: string;
}

/** @throws Refusal where there is none. */
export async function readCard(orm: Orm, cardId: string): Promise<OperatorCard> {
  const card = await findCard(orm, cardId);
  if (card === null) throw unknownId('card', cardId, 'its id is in GET /v1/cards of the partner');
  return card;
}

/** Null where there is none. */
export async function findCard(orm: Orm, cardId: string): Promise<OperatorCard | null> {
  const [row] = await query<CardRow & Beside>(
    orm.em.fork(),
    `SELECT ${cardColumns('c')}, p.name AS partner_name, coalesce(a.posted, 0) AS balance_cents,
       s.id AS change_id, s.operation AS change_operation, s.created_at AS change_since
     FROM card c JOIN partner p ON p.id = c.partner_id LEFT JOIN ledger.account a ON a.card_id = c.id
     LEFT JOIN idempotency_claim s ON s.id = c.status_change_claim_id
     WHERE c.id = $1`,
    [cardId],
  );
  if (row === undefined) return null;
  return {
    id: row.id,
    object: 'card',
    partner_id: row.partner_id,
    partner_name: row.partner_name,
    mode: row.mode,
    status: row.status,
    balance: Number(row.balance_cents),
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
    status_change: changeOf(row),
    created: new Date(row.created_at).toISOString(),
    workflow_id: issueCardWorkflowId(row.id),
  };
}

type Beside = { partner_name: string; balance_cents: string } & Change;
type Change =
  | { change_id: null }
  | { change_id: string; change_operation: StatusChangeOperation; change_since: string };

function changeOf(row: { id: string } & Change): OperatorCard['status_change'] {
  if (row.change_id === null) return null;
  return {
    operation: row.change_operation,
    since: new Date(row.change_since).toISOString(),
    workflow_id: changeCardStatusWorkflowId(row.id, row.change_id),
  };
}
