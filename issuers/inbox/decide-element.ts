import { sql } from 'kysely';
import { needsApproval } from '../../accounts/adjust-balance.ts';
import { ApiError } from '../../domain/api-error.ts';
import type { PaymentSnapshot } from '../../domain/payment.ts';
import { Refusal, unknownId } from '../../domain/refusal.ts';
import { bookPayments } from '../../payments/book-payments.ts';
import type { HandMade } from '../../payments/rules.ts';
import { presentTransaction, type TransactionResource } from '../../payments/transaction-resource.ts';
import type { Row } from '../../platform/db/entities.ts';
import { type Reader, readStatement, type Transactor, writeStatement } from '../../platform/db/sql.ts';
import { transaction } from '../../platform/db/transaction.ts';
import { type Operator, recordAudit } from '../../requests/operator-context.ts';
import { findNetworkCard } from './find-card.ts';
import { makeDue } from './inbox.ts';
import type { WaitingElement } from './tables.ts';

// What an element of a payment means that only a person can say: it can't be read, or its payment's card can't
// take it by itself. It is stored once for the element, and the booking reads it (docs/decisions/payments.md).

interface Decision {
  elementId: string;
  /** The payment's card, if the network's id of it is none of ours. */
  cardId: string | null;
  made: HandMade;
  reason: string;
}

/** What became of a decision. `waits`: another person has to approve it. */
export type Decided =
  | { outcome: 'booked'; transaction: TransactionResource }
  | { outcome: 'dismissed' }
  | { outcome: 'waits' };

interface DecisionContext extends Operator {
  /** Above this amount it waits for another person; null: it never does. */
  approvalCents: number | null;
  /** How long an authorization holds its amount at most. */
  authorizationTtlMs: number;
}

/**
 * Says what an element means, and books its payment with that: decision, booking and audit entry are one
 * transaction.
 * @throws Refusal if there is no such element, it was decided before, its card is not known, or it can't be
 * booked
 */
export function decideElement(context: DecisionContext, decision: Decision): Promise<Decided> {
  const { orm, actor, approvalCents } = context;
  const { elementId, made, reason } = decision;
  return transaction(orm, async (tx) => {
    const element = await findUndecided(tx, elementId, made);
    const cardId = await findCard(tx, element, decision);
    const amountCents = made.means === 'nothing' ? null : made.amountCents;
    const waits = amountCents !== null && (await needsApproval(tx, amountCents, approvalCents));
    const { payment_id: paymentId } = element;
    const values = { id: elementId, means: made.means, amountCents, paymentId, cardId, actor };
    const [stored] = await insert(tx, { ...values, approved: !waits });
    if (stored === undefined) throw decidedBefore(elementId);
    const action = waits ? 'request' : made.means === 'nothing' ? 'dismiss' : 'book';
    const detail = { paymentId, cardId, ...made, atIssuer: element.element, reason };
    recordAudit(tx, { actor, action: `transaction.${action}`, subject: elementId, detail });
    return waits ? { outcome: 'waits' } : book(tx, context, { ...element, card_id: cardId }, made);
  });
}

/**
 * Approves what another person has said of an element, and books it.
 * @throws Refusal if nothing waits, or the same person or login said it
 */
export function approveElement(context: DecisionContext, elementId: string): Promise<Decided> {
  const { orm, actor } = context;
  return transaction(orm, async (tx) => {
    const [asked] = await lockWaiting(tx, { elementId });
    if (asked === undefined) throw nothingWaits(elementId);
    if (asked.requested_by === actor || asked.requested_login === asked.login) {
      throw new Refusal(
        `${asked.requested_by} said what ${elementId} means, so somebody else has to approve it, with another OPERATOR and login.`,
      );
    }
    const element = await find(tx, elementId);
    await approve(tx, { elementId, actor });
    const { means, amount_cents: amount, card_id: cardId, payment_id: paymentId } = asked;
    const detail = { paymentId, cardId, means, amountCents: Number(amount), requestedBy: asked.requested_by };
    recordAudit(tx, { actor, action: 'transaction.approve', subject: elementId, detail });
    const made = { means, amountCents: Number(amount) } as HandMade;
    return book(tx, context, { ...element, card_id: cardId ?? element.card_id }, made);
  });
}

/** Where an element is: in a payment of ours, or in one that is not booked. */
interface FoundElement {
  payment_id: string;
  /** Null if the network's id of its card is none of ours. */
  card_id: string | null;
  network_card_id: string | null;
  element: WaitingElement;
  /** Of a payment that is not booked: all of its elements. */
  elements: WaitingElement[] | null;
  /** What a person has said before. */
  decided_as: HandMade['means'] | null;
}

async function find(tx: Transactor, elementId: string): Promise<FoundElement> {
  const [found] = await elementWith(tx, { elementId });
  if (found === undefined)
    throw new Refusal('No payment has such an element to be decided: run "operator transaction undecided".');
  return found;
}

/** A dismissal can be taken back, because it has booked nothing. */
async function findUndecided(tx: Transactor, elementId: string, made: HandMade): Promise<FoundElement> {
  const found = await find(tx, elementId);
  const isMended = found.decided_as === 'nothing' && made.means !== 'nothing';
  if (found.decided_as !== null && !isMended) throw decidedBefore(elementId);
  if (isMended) await takeBack(tx, { elementId });
  return found;
}

const takeBack = writeStatement((db, { elementId }: { elementId: string }) =>
  db.deleteFrom('payment_element').where('id', '=', elementId),
);

const decidedBefore = (elementId: string): Refusal =>
  new Refusal(
    `${elementId} was decided before, and nothing was changed: see "operator audit list --subject ${elementId}".`,
  );

/** @returns null if nothing is to be booked, and no card is known */
async function findCard(
  tx: Transactor,
  { card_id, network_card_id: networkCardId }: FoundElement,
  { elementId, cardId, made }: Decision,
): Promise<string | null> {
  const known = card_id ?? (networkCardId && (await findNetworkCard(tx, networkCardId))?.cardId) ?? null;
  if (cardId !== null && known !== null && cardId !== known)
    throw new Refusal(`${elementId} is of ${known}: leave out --card.`);
  if (cardId !== null && (await liveCard(tx, { cardId })).length === 0)
    throw unknownId('card', cardId, 'it must be a live card; run "operator card list"');
  if (known === null && cardId === null && made.means !== 'nothing') {
    throw new Refusal(
      `No card of ours has the network's card id of ${elementId}. Find out from the network whose card it is, and give it with --card.`,
    );
  }
  return known ?? cardId;
}

const liveCard = readStatement(
  (db, { cardId }: { cardId: string }) =>
    db.selectFrom('card').select('id').where('id', '=', cardId).where('mode', '=', sql.lit<'live'>('live')),
  { acrossTenants: 'operator' },
);

async function book(
  tx: Transactor,
  { authorizationTtlMs: ttlMs }: DecisionContext,
  { payment_id: paymentId, card_id: cardId, element, elements, network_card_id }: FoundElement,
  made: HandMade,
): Promise<Decided> {
  await makeDue(tx, { id: paymentId });
  if (cardId === null) return { outcome: 'dismissed' };
  const snapshot = elements && named(paymentId, network_card_id ?? '', elements);
  const [booked] = await bookPayments(tx, [{ cardId, paymentId, snapshot, readAt: null }], { ttlMs }).catch(
    (error: unknown) => {
      if (!(error instanceof ApiError)) throw error;
      if (error.code === 'idempotency_conflict')
        throw new Refusal(
          'Nothing was booked: the payment is booked on another card by now. Reject the decision if it waits for an approval, and ' +
            'say again what the element means, without --card.',
        );
      throw new Refusal(`Nothing was booked. ${error.message}`);
    },
  );
  if (made.means === 'nothing') return { outcome: 'dismissed' };
  const row = booked?.transactions.find(({ network_transaction_id: id }) => id === element.id);
  if (row === undefined) throw new Refusal(`${element.id} is booked already: nothing was changed.`);
  return { outcome: 'booked', transaction: presentTransaction(row) };
}

/**
 * A payment whose card a person has named, as far as it is known: older than anything that is read of it, so
 * that this books the rest.
 */
const named = (
  paymentId: string,
  networkCardId: string,
  elements: readonly WaitingElement[],
): PaymentSnapshot => ({
  paymentId,
  networkCardId,
  version: [],
  requests: [],
  movements: [],
  authorizedCents: 0,
  heldCents: 0,
  endedBy: null,
  expiresAt: null,
  unreadable: elements.map((element) => ({ ...element, at: new Date(0).toISOString() })),
});

// Few payments have elements that can't be read, and little waits.
const elementWith = readStatement(
  (_, { elementId }: { elementId: string }) => sql<FoundElement>`
    SELECT f.*, (SELECT means FROM payment_element WHERE id = ${elementId}) AS decided_as
    FROM (
      SELECT y.payment_id, y.card_id, NULL::text AS network_card_id, u AS element, NULL::jsonb AS elements
      FROM payment y CROSS JOIN LATERAL jsonb_array_elements(y.said -> 'unreadable') u
      WHERE y.mode = 'live' AND y.said -> 'unreadable' <> '[]' AND u ->> 'id' = ${elementId}
      UNION ALL
      SELECT i.id, NULL::text, i.network_card_id, u, i.elements
      FROM network_inbox i CROSS JOIN LATERAL jsonb_array_elements(i.elements) u
      WHERE i.reason IN ('card_unknown', 'card_failed') AND u ->> 'id' = ${elementId}
    ) f LIMIT 1`,
  { acrossTenants: 'operator' },
);

interface InsertValues {
  id: string;
  means: HandMade['means'];
  amountCents: number | null;
  paymentId: string;
  cardId: string | null;
  actor: string;
  approved: boolean;
}

const insert = writeStatement((db, values: InsertValues) =>
  db
    .insertInto('payment_element')
    .values({
      id: values.id,
      means: values.means,
      amount_cents: sql<string>`${values.amountCents}`,
      payment_id: values.paymentId,
      card_id: values.cardId,
      requested_by: values.actor,
      approved: values.approved,
    })
    .onConflict((conflict) => conflict.column('id').doNothing())
    .returning('id'),
);

type WaitingDecision = Row<
  'payment_element',
  'means' | 'amount_cents' | 'payment_id' | 'card_id' | 'requested_by' | 'requested_login'
> & { login: string };

const lockWaiting = writeStatement(
  (_, { elementId }: { elementId: string }) => sql<WaitingDecision>`
    SELECT means, amount_cents, payment_id, card_id, requested_by, requested_login, session_user AS login
    FROM payment_element WHERE id = ${elementId} AND NOT approved FOR NO KEY UPDATE`,
);

const approve = writeStatement(
  (_, { elementId, actor }: { elementId: string; actor: string }) => sql`
    UPDATE payment_element SET approved = true, approved_by = ${actor}, approved_login = session_user
    WHERE id = ${elementId}`,
);

/** Whether a person has said of each that nothing was bought. */
export async function areDismissed(em: Reader, elements: readonly WaitingElement[]): Promise<boolean> {
  if (elements.length === 0) return false;
  const ids = elements.map(({ id }) => id);
  return (await dismissed(em, { ids })).length === new Set(ids).size;
}

const dismissed = readStatement(
  (_, { ids }: { ids: string[] }) => sql<{ id: string }>`
    SELECT id FROM payment_element WHERE id = ANY (${ids}::text[]) AND means = 'nothing'`,
);

/**
 * Takes back what somebody has said of an element and nobody has approved.
 * @throws Refusal if nothing waits
 */
export function rejectElement({ orm, actor }: Operator, elementId: string, reason: string): Promise<void> {
  return transaction(orm, async (tx) => {
    const [rejected] = await forget(tx, { elementId });
    if (rejected === undefined) throw nothingWaits(elementId);
    const { means, amount_cents: amountCents, requested_by: requestedBy } = rejected;
    const detail = { means, amountCents: Number(amountCents), requestedBy, reason };
    recordAudit(tx, { actor, action: 'transaction.reject', subject: elementId, detail });
  });
}

const nothingWaits = (elementId: string): Refusal =>
  new Refusal(`Nothing that is said of ${elementId} waits for an approval.`);

const forget = writeStatement((db, { elementId }: { elementId: string }) =>
  db
    .deleteFrom('payment_element')
    .where('id', '=', elementId)
    .where('approved', '=', sql.lit(false))
    .returning(['means', 'amount_cents', 'requested_by']),
);
