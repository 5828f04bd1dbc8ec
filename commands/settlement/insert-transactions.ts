import type { EntityManager } from '@mikro-orm/postgresql';
import { query } from '../../db/sql.ts';
import type { EventType } from '../../domain/event.ts';
import { siblingId } from '../../domain/ids.ts';
import { type CardRow, presentCard } from '../../resources/card.ts';
import { presentTransaction, type TransactionRow } from '../../resources/transaction.ts';

/** Inserts transactions, each with its event, which has the card as it is right after it, in one statement. */
export async function insertTransactions(
  tx: EntityManager,
  made: readonly { row: TransactionRow; card: CardRow }[],
): Promise<void> {
  if (made.length === 0) return;
  const rows = made.map(({ row, card }) => {
    const eventId = siblingId('evt', row.id);
    return { ...row, event_id: eventId, event_body: eventBody(eventId, row, card) };
  });
  await query(tx, INSERT, [JSON.stringify(rows), TYPE]);
}

const TYPE: EventType = 'card.transaction.created';

function eventBody(id: string, row: TransactionRow, card: CardRow): string {
  const transaction = presentTransaction(row);
  const data = { transaction, card: presentCard(card, transaction.card_balance_after) };
  return JSON.stringify({ id, type: TYPE, created: transaction.created, mode: row.mode, data });
}

const INSERT = `
  WITH made AS (
    SELECT r.* FROM json_to_recordset($1) AS r (
      id text, partner_id text, mode text, card_id text, network_transaction_id text, requested_type text,
      forced boolean, type text, amount_cents bigint, fees jsonb, merchant_name text, merchant_category_code text,
      merchant_city text, merchant_country text, decline_reason text, charged_to text,
      card_balance_after_cents bigint, created_at timestamptz, event_id text, event_body text)
  ), inserted AS (
    INSERT INTO card_transaction (id, partner_id, mode, card_id, network_transaction_id, requested_type, forced, type,
      amount_cents, fees, merchant_name, merchant_category_code, merchant_city, merchant_country, decline_reason,
      charged_to, card_balance_after_cents, created_at)
    SELECT id, partner_id, mode, card_id, network_transaction_id, requested_type, forced, type, amount_cents, fees,
      merchant_name, merchant_category_code, merchant_city, merchant_country, decline_reason, charged_to,
      card_balance_after_cents, created_at
    FROM made
  )
  INSERT INTO event (id, partner_id, mode, type, card_id, body, created_at)
  SELECT event_id, partner_id, mode, $2, card_id, event_body, created_at FROM made`;
