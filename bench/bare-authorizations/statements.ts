// Each writes everything that one change writes, and calls the ledger.

const claim = (operation: string, status: number, first: number) => `answered AS (
    INSERT INTO idempotency_claim (id, partner_id, mode, key, operation, fingerprint, request_id, response_status,
      response_body, lease_expires_at)
    VALUES ($${first}, $2, 'test', $${first}, '${operation}', $${first + 1}, $${first}, ${status}, $${first + 2}, now())
    ON CONFLICT (partner_id, mode, key) DO NOTHING
  )`;

export const INSERT_AUTHORIZATION = `
  WITH authorized AS (
    INSERT INTO card_authorization (id, partner_id, mode, card_id, status, amount_cents, held_cents, settled_cents,
      requests, holds, expires_at, created_at)
    VALUES ($1, $2, 'test', $3, 'pending', $4, $4, 0, $5, 1, $6, $7)
  ), notified AS (
    INSERT INTO event (id, partner_id, mode, type, card_id, body, created_at)
    VALUES ($8, $2, 'test', 'card.authorization.created', $3, $9, $7)
  ), ${claim('authorize_card', 201, 10)}
  SELECT outcome FROM ledger.apply_operations($13)`;

export const INSERT_CLEARING = `
  WITH authorized AS (
    UPDATE card_authorization SET status = 'closed', held_cents = 0, settled_cents = $4 WHERE id = $1
  ), settled AS (
    INSERT INTO card_transaction (id, partner_id, mode, card_id, network_transaction_id, type,
      amount_cents, fees, charged_to, card_balance_after_cents, created_at, authorization_id, from_hold_cents)
    VALUES ($5, $2, 'test', $3, $6, 'purchase', $4, $7, 'card', $8, $9, $1, $4)
  ), notified AS (
    INSERT INTO event (id, partner_id, mode, type, card_id, body, created_at)
    VALUES ($10, $2, 'test', 'card.authorization.updated', $3, $11, $9),
      ($12, $2, 'test', 'card.transaction.created', $3, $13, $9)
  ), ${claim('capture_authorization', 201, 14)}
  SELECT outcome FROM ledger.apply_operations($17)`;

export const UPDATE_REVERSED = `
  WITH authorized AS (
    UPDATE card_authorization SET status = 'reversed', amount_cents = 0, held_cents = 0 WHERE id = $1
  ), notified AS (
    INSERT INTO event (id, partner_id, mode, type, card_id, body, created_at)
    VALUES ($5, $2, 'test', 'card.authorization.updated', $3, $6, $4)
  ), ${claim('reverse_authorization', 200, 7)}
  SELECT outcome FROM ledger.apply_operations($10)`;
