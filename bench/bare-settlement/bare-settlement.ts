import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { transferId } from '../../ledger/posting.ts';
import { createBareTransactions } from '../support/bare-transactions.ts';
import type { BenchCard } from '../support/seed.ts';

const FEE_CENTS = 11;

/**
 * The floor of a settlement: only `pg` with prepared statements, one transaction per purchase, with the same
 * locks, reads, ledger call and rows; the only rule is whether the balance is enough.
 */
export function createBareSettlement(databaseUrl: string, poolSize: number) {
  const transactions = createBareTransactions(databaseUrl, poolSize);
  return {
    async settle({ cardId, partnerId, mode }: BenchCard, amountCents: number): Promise<void> {
      await transactions.run(async (client) => {
        const card = (await client.query({ name: 'lock', text: LOCK, values: [cardId] })).rows[0];
        const networkTransactionId = randomUUID();
        const terms = await client.query({
          name: 'read',
          text: READ,
          values: [cardId, partnerId, mode, networkTransactionId],
        });
        const { posted, known } = terms.rows[0];
        if (known !== null || Number(posted) < amountCents) throw new Error('the purchase cannot be settled');
        const id = `txn_${randomUUID()}`;
        await client.query({ name: 'move', text: MOVE, values: [encodeSteps(id, card, amountCents)] });
        await insert(client, {
          id,
          card,
          networkTransactionId,
          amountCents,
          left: Number(posted) - amountCents,
        });
      });
    },
    stop: () => transactions.stop(),
  };
}

const LOCK = `
  SELECT id, partner_id, mode, status, external_ref, card_name, cardholder_first_name, cardholder_last_name, email,
    product_code, network, last4, exp_month, exp_year, failure_code, created_at
  FROM card WHERE id = $1 FOR NO KEY UPDATE`;

const READ = `
  SELECT (SELECT posted FROM ledger.account WHERE card_id = $1) AS posted,
    (SELECT fee_plan FROM partner WHERE id = $2) AS fee_plan,
    (SELECT id FROM card_transaction WHERE mode = $3 AND network_transaction_id = $4) AS known`;

const MOVE = 'SELECT outcome, reason, prepaid_posted, prepaid_held FROM ledger.apply_operations($1)';

const INSERT = `
  WITH made AS (
    INSERT INTO card_transaction (id, partner_id, mode, card_id, network_transaction_id, type,
      amount_cents, fees, charged_to, card_balance_after_cents, created_at)
    VALUES ($1, $2, $3, $4, $5, 'purchase', $6, $7, 'card', $8, $9)
  )
  INSERT INTO event (id, partner_id, mode, type, card_id, body, created_at)
  VALUES ($10, $2, $3, 'card.transaction.created', $4, $11, $9)`;

interface Card {
  id: string;
  partner_id: string;
  mode: string;
}

function encodeSteps(id: string, card: Card, amountCents: number): string {
  const operationId = `settle/${id}`;
  const common = {
    operation: 0,
    operation_id: operationId,
    partner_id: card.partner_id,
    mode: card.mode,
    phase: 'single',
    pending_id: null,
  };
  const account = (kind: string) => `${kind}/${card.mode}/${card.partner_id}`;
  return JSON.stringify([
    {
      ...common,
      id: transferId(operationId, 'amount'),
      code: 'purchase',
      amount: amountCents,
      debit_id: `card/${card.id}`,
      credit_id: account('network'),
    },
    {
      ...common,
      id: transferId(operationId, 'fee'),
      code: 'fee_transaction',
      amount: FEE_CENTS,
      debit_id: account('prepaid'),
      credit_id: account('fee_revenue'),
    },
  ]);
}

async function insert(
  client: pg.PoolClient,
  made: { id: string; card: Card; networkTransactionId: string; amountCents: number; left: number },
): Promise<void> {
  const { id, card, networkTransactionId, amountCents, left } = made;
  const created = new Date().toISOString();
  const fees = [{ type: 'transaction', amount: FEE_CENTS }];
  const eventId = `evt_${randomUUID()}`;
  // As long as a real transaction and its card.
  const body = { id: eventId, type: 'card.transaction.created', created, data: 'x'.repeat(900) };
  await client.query({
    name: 'insert',
    text: INSERT,
    values: [
      id,
      card.partner_id,
      card.mode,
      card.id,
      networkTransactionId,
      amountCents,
      JSON.stringify(fees),
      left,
      created,
      eventId,
      JSON.stringify(body),
    ],
  });
}
