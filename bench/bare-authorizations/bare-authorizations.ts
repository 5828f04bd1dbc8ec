import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { transferId } from '../../ledger/posting.ts';
import { AUTHORIZATION_COLUMNS, CARD_COLUMNS, of } from '../../platform/db/columns.ts';
import { createBareTransactions } from '../support/bare-transactions.ts';
import type { BenchCard } from '../support/seed.ts';

/** Every authorization is of this much, and all of it is cleared or reversed. */
export const AMOUNT_CENTS = 100;
const FEE_CENTS = 11;
const TTL_MS = 168 * 3_600_000;

/**
 * The floor of an authorization in test mode: only `pg` with prepared statements, one transaction of two
 * statements each, with the same lock, reads, ledger call and rows. The only rule is whether enough is
 * available; nothing is sealed.
 */
export function createBareAuthorizations(databaseUrl: string, poolSize: number) {
  const transactions = createBareTransactions(databaseUrl, poolSize);

  /** @returns the new authorization's id */
  async function decide(card: BenchCard): Promise<string> {
    const id = `auth_${randomUUID()}`;
    await transactions.run(async (client) => {
      const terms = await lock(client, card.partnerId, { cardId: card.cardId });
      if (Number(terms.card_cents) - Number(terms.card_held_cents) < AMOUNT_CENTS) {
        throw new Error('not enough is available on the card');
      }
      const created = new Date();
      const expires = new Date(created.getTime() + TTL_MS).toISOString();
      const requests = [
        {
          type: 'authorization',
          amount: AMOUNT_CENTS,
          approved: true,
          decline_reason: null,
          created: created.toISOString(),
        },
      ];
      const event = newEvent(AUTHORIZATION_LENGTH + CARD_LENGTH);
      await write(client, {
        name: 'authorize',
        text: INSERT_AUTHORIZATION,
        values: [
          id,
          card.partnerId,
          card.cardId,
          AMOUNT_CENTS,
          JSON.stringify(requests),
          expires,
          created.toISOString(),
          event.id,
          event.body,
          ...newClaim(id, AUTHORIZATION_LENGTH),
          encodeSteps(card, `auth/${id}`, [HOLD]),
        ],
      });
    });
    return id;
  }

  async function clear(card: BenchCard, id: string): Promise<void> {
    await transactions.run(async (client) => {
      const terms = await lock(client, card.partnerId, { authorizationId: id });
      requirePending(terms);
      const transactionId = `txn_${randomUUID()}`;
      const created = new Date().toISOString();
      const fees = [{ type: 'transaction', amount: FEE_CENTS }];
      const left = Number(terms.card_cents) - AMOUNT_CENTS;
      const updated = newEvent(AUTHORIZATION_LENGTH + CARD_LENGTH);
      const settled = newEvent(TRANSACTION_LENGTH + CARD_LENGTH);
      await write(client, {
        name: 'clear',
        text: INSERT_CLEARING,
        values: [
          id,
          card.partnerId,
          card.cardId,
          AMOUNT_CENTS,
          transactionId,
          `simulated/${randomUUID()}`,
          JSON.stringify(fees),
          left,
          created,
          updated.id,
          updated.body,
          settled.id,
          settled.body,
          ...newClaim(transactionId, TRANSACTION_LENGTH),
          encodeSteps(card, `auth/${id}`, [POST], `settle/${transactionId}`),
        ],
      });
    });
  }

  async function reverse(card: BenchCard, id: string): Promise<void> {
    await transactions.run(async (client) => {
      const terms = await lock(client, card.partnerId, { authorizationId: id });
      requirePending(terms);
      const event = newEvent(AUTHORIZATION_LENGTH + CARD_LENGTH);
      await write(client, {
        name: 'reverse',
        text: UPDATE_REVERSED,
        values: [
          id,
          card.partnerId,
          card.cardId,
          new Date().toISOString(),
          event.id,
          event.body,
          ...newClaim(id, AUTHORIZATION_LENGTH),
          encodeSteps(card, `auth/${id}`, [VOID]),
        ],
      });
    });
  }

  return { decide, clear, reverse, stop: () => transactions.stop() };
}

const LOCK = `
  SELECT f.claim_id, f.fingerprint, f.response_status, f.response_body, f.card_cents, f.card_held_cents, f.prepaid_cents,
    f.fee_plan, ${of('(f.card)', CARD_COLUMNS).join(', ')},
    ${AUTHORIZATION_COLUMNS.map((column) => `(f.authorized).${column} AS authorized_${column}`).join(', ')}
  FROM lock_test_card_terms($1, $2, $3, $4, false) f`;

const claim = (operation: string, status: number, first: number) => `answered AS (
    INSERT INTO idempotency_claim (id, partner_id, mode, key, operation, fingerprint, request_id, response_status,
      response_body, lease_expires_at)
    VALUES ($${first}, $2, 'test', $${first}, '${operation}', $${first + 1}, $${first}, ${status}, $${first + 2}, now())
    ON CONFLICT (partner_id, mode, key) DO NOTHING
  )`;

// Each writes everything that one change writes, and calls the ledger.
const INSERT_AUTHORIZATION = `
  WITH authorized AS (
    INSERT INTO card_authorization (id, partner_id, mode, card_id, status, amount_cents, held_cents, settled_cents,
      requests, holds, expires_at, created_at)
    VALUES ($1, $2, 'test', $3, 'pending', $4, $4, 0, $5, 1, $6, $7)
  ), notified AS (
    INSERT INTO event (id, partner_id, mode, type, card_id, body, created_at)
    VALUES ($8, $2, 'test', 'card.authorization.created', $3, $9, $7)
  ), ${claim('authorize_card', 201, 10)}
  SELECT outcome FROM ledger.apply_operations($13)`;

const INSERT_CLEARING = `
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

const UPDATE_REVERSED = `
  WITH authorized AS (
    UPDATE card_authorization SET status = 'reversed', amount_cents = 0, held_cents = 0 WHERE id = $1
  ), notified AS (
    INSERT INTO event (id, partner_id, mode, type, card_id, body, created_at)
    VALUES ($5, $2, 'test', 'card.authorization.updated', $3, $6, $4)
  ), ${claim('reverse_authorization', 200, 7)}
  SELECT outcome FROM ledger.apply_operations($10)`;

// biome-ignore lint/suspicious/noExplicitAny: the row as pg reads it.
type Terms = any;

async function lock(
  client: pg.PoolClient,
  partnerId: string,
  about: { cardId?: string; authorizationId?: string },
): Promise<Terms> {
  const values = [partnerId, randomUUID(), about.cardId ?? null, about.authorizationId ?? null];
  return (await client.query({ name: 'lock', text: LOCK, values })).rows[0];
}

async function write(client: pg.PoolClient, statement: pg.QueryConfig): Promise<void> {
  const { rows } = await client.query(statement);
  for (const { outcome } of rows) if (outcome !== 'applied') throw new Error(`a posting is ${outcome}`);
}

function requirePending(terms: Terms): void {
  if (terms.authorized_status !== 'pending') throw new Error('the authorization is not pending');
}

/** How long the JSON of each is, in characters. */
const AUTHORIZATION_LENGTH = 500;
const TRANSACTION_LENGTH = 550;
const CARD_LENGTH = 550;

function newEvent(length: number): { id: string; body: string } {
  const id = `evt_${randomUUID()}`;
  return { id, body: JSON.stringify({ id, created: new Date().toISOString(), data: 'x'.repeat(length) }) };
}

/** The values of a claim's row: its id, which is also its key, its fingerprint, and its response. */
const newClaim = (id: string, length: number) => [
  `claim_${randomUUID()}`,
  Buffer.alloc(32),
  Buffer.from(JSON.stringify({ id, more: 'x'.repeat(length) })),
];

const HOLD = { step: 'hold/1', phase: 'pending', resolves: null };
const POST = { step: 'hold/1/post', phase: 'post', resolves: 'hold/1' };
const VOID = { step: 'hold/1/void', phase: 'void', resolves: 'hold/1' };

/** @param paidBy the operation of a clearing's fee */
function encodeSteps(
  { cardId, partnerId }: BenchCard,
  operationId: string,
  holds: (typeof HOLD | typeof POST)[],
  paidBy?: string,
): string {
  const steps: object[] = holds.map(({ step, phase, resolves }) => ({
    operation: 0,
    operation_id: operationId,
    partner_id: partnerId,
    mode: 'test',
    id: transferId(operationId, step),
    code: 'authorization',
    phase,
    pending_id: resolves === null ? null : transferId(operationId, resolves),
    debit_id: `card/${cardId}`,
    credit_id: `network/test/${partnerId}`,
    amount: AMOUNT_CENTS,
  }));
  if (paidBy !== undefined) {
    steps.push({
      operation: 1,
      operation_id: paidBy,
      partner_id: partnerId,
      mode: 'test',
      id: transferId(paidBy, 'fee'),
      code: 'fee_transaction',
      phase: 'single',
      pending_id: null,
      debit_id: `prepaid/test/${partnerId}`,
      credit_id: `fee_revenue/test/${partnerId}`,
      amount: FEE_CENTS,
    });
  }
  return JSON.stringify(steps);
}
