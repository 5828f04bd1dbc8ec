import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { transferId } from '../../ledger/posting.ts';
import { AUTHORIZATION_COLUMNS, CARD_COLUMNS, of } from '../../platform/db/columns.ts';
import { createBareTransactions } from '../support/bare-transactions.ts';
import type { BenchCard } from '../support/seed.ts';
import { INSERT_AUTHORIZATION, INSERT_CLEARING, UPDATE_REVERSED } from './statements.ts';

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
      const authorization = presentAuthorization({ ...card, id, status: 'pending', requests, expires });
      const event = newEvent('card.authorization.created', { authorization, card: presentCard(terms) });
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
          ...newClaim(authorization),
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
      const authorization = presentAuthorization({ ...card, id, status: 'closed', ...keptTerms(terms) });
      const transaction = {
        id: transactionId,
        object: 'transaction',
        card_id: card.cardId,
        authorization_id: id,
        type: 'purchase',
        status: 'settled',
        amount: AMOUNT_CENTS,
        currency: 'USD',
        fees,
        merchant: NO_MERCHANT,
        decline_reason: null,
        charged_to: 'card',
        card_amount: AMOUNT_CENTS,
        partner_balance_amount: 0,
        card_balance_after: left,
        mode: 'test',
        created,
      };
      const shown = presentCard(terms);
      const updated = newEvent('card.authorization.updated', { authorization, card: shown });
      const settled = newEvent('card.transaction.created', { transaction, card: shown });
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
          ...newClaim(transaction),
          encodeSteps(card, `auth/${id}`, [POST], `settle/${transactionId}`),
        ],
      });
    });
  }

  async function reverse(card: BenchCard, id: string): Promise<void> {
    await transactions.run(async (client) => {
      const terms = await lock(client, card.partnerId, { authorizationId: id });
      requirePending(terms);
      const authorization = presentAuthorization({ ...card, id, status: 'reversed', ...keptTerms(terms) });
      const event = newEvent('card.authorization.updated', { authorization, card: presentCard(terms) });
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
          ...newClaim(authorization),
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

const NO_MERCHANT = { name: null, category_code: null, city: null, country: null };

function presentAuthorization(of: {
  id: string;
  cardId: string;
  status: 'pending' | 'closed' | 'reversed';
  requests: { created: string }[];
  expires: string;
}) {
  return {
    id: of.id,
    object: 'authorization',
    card_id: of.cardId,
    status: of.status,
    amount: of.status === 'reversed' ? 0 : AMOUNT_CENTS,
    held_amount: of.status === 'pending' ? AMOUNT_CENTS : 0,
    settled_amount: of.status === 'closed' ? AMOUNT_CENTS : 0,
    currency: 'USD',
    decline_reason: null,
    merchant: NO_MERCHANT,
    requests: of.requests,
    expires_at: of.expires,
    mode: 'test',
    created: of.requests[0]?.created,
  };
}

/** What a change leaves as it was. */
const keptTerms = (terms: Terms) => ({
  requests: terms.authorized_requests,
  expires: terms.authorized_expires_at.toISOString(),
});

/** As many fields as a card has in an event. */
const presentCard = (terms: Terms) => ({
  id: terms.id,
  object: 'card',
  status: terms.status,
  external_ref: terms.external_ref,
  card_name: terms.card_name,
  cardholder_first_name: terms.cardholder_first_name,
  cardholder_last_name: terms.cardholder_last_name,
  email: terms.email,
  metadata: terms.metadata,
  product_code: terms.product_code,
  network: terms.network,
  last4: terms.last4,
  exp_month: terms.exp_month,
  exp_year: terms.exp_year,
  balance: Number(terms.card_cents),
  available_balance: Number(terms.card_cents) - Number(terms.card_held_cents),
  currency: 'USD',
  failure_code: terms.failure_code,
  mode: 'test',
  created: terms.created_at,
});

function newEvent(type: string, data: object): { id: string; body: string } {
  const id = `evt_${randomUUID()}`;
  const created = new Date().toISOString();
  return { id, body: JSON.stringify({ id, type, created, mode: 'test', data }) };
}

/** The values of a claim's row: its id, which is also its key, its fingerprint, and its response. */
const newClaim = (body: object) => [
  `claim_${randomUUID()}`,
  Buffer.alloc(32),
  Buffer.from(JSON.stringify(body)),
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
