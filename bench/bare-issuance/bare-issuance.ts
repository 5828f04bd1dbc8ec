import { randomUUID } from 'node:crypto';
import { transferId } from '../../ledger/posting.ts';
import { createBareTransactions } from '../support/bare-transactions.ts';

/** Each card is funded with this much, with the fees of the platform's plan. */
const AMOUNT_CENTS = 1_000;
const FEES = [
  { type: 'card_activation', code: 'fee_activation', amount: 100 },
  { type: 'card_funding', code: 'fee_funding', amount: 50 },
];

/**
 * The floor of an issuance in test mode: only `pg` with prepared statements, one transaction per card, with
 * the same locks, reads, ledger call and rows; no rules, no HTTP, and nothing is sealed.
 */
export function createBareIssuance(databaseUrl: string, poolSize: number) {
  const transactions = createBareTransactions(databaseUrl, poolSize);
  return {
    async issue(partnerId: string): Promise<void> {
      await transactions.run(async (client) => {
        const claimId = `claim_${randomUUID()}`;
        await client.query({ name: 'lock', text: LOCK, values: [partnerId, claimId] });
        const { rows } = await client.query({
          name: 'write',
          text: WRITE,
          values: statementValues(partnerId, claimId),
        });
        if (rows[0].outcome !== 'applied') throw new Error(`the account cannot pay: ${rows[0].outcome}`);
      });
    },
    stop: () => transactions.stop(),
  };
}

const LOCK = `
  SELECT f.*, (SELECT json_agg(d) FROM product d WHERE d.is_current) AS products
  FROM lock_test_card_terms($1, $2, NULL, NULL, true) f`;

const WRITE = `
  WITH done AS (
    INSERT INTO card (id, partner_id, mode, status, external_ref, product_code, network, network_card_id, last4,
      exp_month, exp_year, funding_cents, fees, created_at)
    SELECT $1, $2, 'test', 'active', $1, code, network, $1, '4242', 12, 2030, $3, $4, $5::timestamptz
    FROM product WHERE is_current
    RETURNING partner_id, mode, funding_cents, counted_on
  ), counted AS (
    UPDATE account_usage u SET open_cards = u.open_cards + 1, loaded_on = counted_on,
      loaded_cents = u.loaded_cents + funding_cents
    FROM done WHERE u.partner_id = done.partner_id AND u.mode = done.mode
  ), reported AS (
    INSERT INTO event (id, partner_id, mode, type, card_id, body, created_at)
    SELECT $6, partner_id, mode, 'card.issued', $1, $7, $5::timestamptz FROM done
  ), answered AS (
    INSERT INTO idempotency_claim (id, partner_id, mode, key, operation, fingerprint, request_id, response_status,
      response_body, lease_expires_at)
    SELECT $8, partner_id, mode, $8, 'create_card', $9::bytea, $8, 201, $10::bytea, now() FROM done
    ON CONFLICT (partner_id, mode, key) DO NOTHING
  )
  SELECT outcome FROM ledger.apply_operations($11)`;

function statementValues(partnerId: string, claimId: string): unknown[] {
  const cardId = `card_${randomUUID()}`;
  const eventId = `evt_${randomUUID()}`;
  const created = new Date().toISOString();
  // As long as a real card's body.
  const card = JSON.stringify({
    id: cardId,
    object: 'card',
    status: 'active',
    created,
    more: 'x'.repeat(330),
  });
  const fees = FEES.map(({ type, amount }) => ({ type, amount }));
  return [
    cardId,
    partnerId,
    AMOUNT_CENTS,
    JSON.stringify(fees),
    created,
    eventId,
    JSON.stringify({ id: eventId, type: 'card.issued', created, mode: 'test', data: { card } }),
    claimId,
    Buffer.alloc(32),
    Buffer.from(card),
    encodeSteps(partnerId, cardId),
  ];
}

function encodeSteps(partnerId: string, cardId: string): string {
  const operationId = `issue/${cardId}`;
  const step = (name: string, code: string, credit: string, amount: number) => ({
    operation: 0,
    operation_id: operationId,
    partner_id: partnerId,
    mode: 'test',
    phase: 'single',
    pending_id: null,
    id: transferId(operationId, name),
    code,
    amount,
    debit_id: `prepaid/test/${partnerId}`,
    credit_id: credit,
  });
  return JSON.stringify([
    step('load', 'issue_load', `card/${cardId}`, AMOUNT_CENTS),
    ...FEES.map(({ type, code, amount }) => step(type, code, `fee_revenue/test/${partnerId}`, amount)),
  ]);
}
