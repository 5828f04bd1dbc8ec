import { sql } from 'kysely';
import type { CardStatus } from '../../domain/card-status.ts';
import type { PaymentSnapshot } from '../../domain/payment.ts';
import { lowestId } from '../../platform/crypto/new-id.ts';
import { readStatement } from '../../platform/db/sql.ts';
import { isReadable, type UnreadableObject } from '../card-network.ts';
import type { Finding } from './findings.ts';
import { inBatches, type Look, missingAtNetwork, tally, tallyUnreadable } from './look.ts';
import { OUR_AUTHORIZATIONS, OUR_TRANSACTIONS } from './ours.ts';
import { noteSeen } from './seen.ts';
import { compareEach, takePayment } from './take-payment.ts';

/** A look reads no more payments than this by their ids. */
const MAX_READ_BY_ID = 10_000;

/**
 * Compares the network's payments with ours: those that it lists, those of ours that it does not, and those
 * that began before the period and may have changed in it. One that differs at both looks is booked as it is
 * there (docs/decisions/reconciliation.md).
 */
export async function compareListedPayments(look: Look): Promise<void> {
  const { network, cardNetwork, orm, runId, since, listedSince, found } = look;
  for await (const batch of inBatches(network.listPayments(listedSince), look))
    await compareSome(look, batch);
  const byId = createReader(look);
  const until = lowestId('auth', since);
  const older = await readOlderPayments(orm.em.fork(), {
    runId,
    network: cardNetwork,
    until,
    limit: MAX_READ_BY_ID,
  });
  for (const { id } of older) await byId.read(id);
  for (const ours of [OUR_TRANSACTIONS, OUR_AUTHORIZATIONS]) {
    for await (const { id, issuer_id: issuerId, payment_id: paymentId, detail } of missingAtNetwork(
      look,
      ours,
    )) {
      if (paymentId === null || (await byId.read(paymentId))?.has(issuerId ?? '') !== false) continue;
      tally(found, { problem: 'missing_at_issuer', kind: 'transaction', id, issuerId, detail });
    }
  }
  if (byId.unread > 0)
    look.logger.warn({ unread: byId.unread }, 'some older payments were too many to be read and compared');
}

/** Reads payments by their ids and compares them, each once in a look. */
function createReader(look: Look) {
  const known = new Map<string, ReadonlySet<string> | null>();
  const reader = {
    unread: 0,
    /** @returns the ids that it names; none if the network has no such payment; null if that can't be said */
    async read(paymentId: string): Promise<ReadonlySet<string> | null> {
      const before = known.get(paymentId);
      if (before !== undefined) return before;
      if (known.size >= MAX_READ_BY_ID) {
        reader.unread += 1;
        return null;
      }
      look.signal.throwIfAborted();
      const payment = await look.network.readPayment(paymentId, 'reconciliation');
      if (payment !== null) await compareSome(look, [payment]);
      const named =
        payment === null
          ? new Set<string>()
          : isReadable(payment)
            ? new Set([paymentId, ...idsOf(payment)])
            : null;
      known.set(paymentId, named);
      return named;
    },
  };
  return reader;
}

const idsOf = ({ movements, unreadable }: PaymentSnapshot): string[] =>
  [...movements, ...unreadable].map(({ id }) => id);

async function compareSome(
  look: Look,
  batch: readonly (PaymentSnapshot | UnreadableObject)[],
): Promise<void> {
  const { orm, runId, until: readAt, found } = look;
  const listed = batch.filter(isReadable);
  const cards = await cardsOf(orm.em.fork(), {
    paymentIds: listed.map(({ paymentId }) => paymentId),
    networkCardIds: listed.map(({ networkCardId }) => networkCardId),
  });
  const onCards = listed.flatMap((snapshot, index) => {
    const { card_id: cardId, status, is_booked: isBooked } = cards[index] as CardOfPayment;
    const isOpen = status !== 'funding_pending' && (status !== 'failed' || isBooked);
    return cardId !== null && isOpen ? [{ cardId, paymentId: snapshot.paymentId, snapshot, readAt }] : [];
  });
  const compared = await compareEach(look, onCards);
  for (const [index, snapshot] of listed.entries()) {
    const card = cards[index] as CardOfPayment;
    await takePayment(look, snapshot, compared.get(snapshot.paymentId) ?? null, card.is_waiting);
    if (card.is_misplaced) tally(found, onAnotherCard(snapshot, card));
  }
  for (const finding of await differentAmounts(look, listed)) tally(found, finding);
  tallyUnreadable(found, 'transaction', batch);
  await noteSeen(orm, runId, 'transaction', listed.flatMap(idsOf));
  const ids = batch.map((one) => (isReadable(one) ? one.paymentId : one.networkId));
  await noteSeen(orm, runId, 'authorization', ids);
}

/** It stays where it is booked: whose money it is, only a person can say. */
function onAnotherCard({ paymentId, networkCardId }: PaymentSnapshot, card: CardOfPayment): Finding {
  const { card_id: bookedOn, named_id: named } = card;
  const whose = named === null ? 'is none of ours' : `is ${named}`;
  const detail = `the payment is booked on ${bookedOn} here; the issuer has it on ${networkCardId}, which ${whose}`;
  return { problem: 'different', kind: 'transaction', id: null, issuerId: paymentId, detail };
}

/** What is booked under an element's id with another amount or type, which nothing corrects. */
async function differentAmounts({ orm }: Look, listed: readonly PaymentSnapshot[]): Promise<Finding[]> {
  const movements = listed.flatMap((snapshot) => snapshot.movements);
  const rows = await bookedAs(orm.em.fork(), { ids: movements.map(({ id }) => id) });
  const byId = new Map(rows.map((row) => [row.network_transaction_id, row]));
  return movements.flatMap(({ id: issuerId, kind, amountCents }): Finding[] => {
    const ours = byId.get(issuerId);
    const type = kind === 'refund' ? 'refund' : 'purchase';
    if (ours === undefined || (ours.type === type && Number(ours.amount_cents) === amountCents)) return [];
    const detail = `${ours.type} of ${ours.amount_cents} cents here; ${type} of ${amountCents} cents at the issuer`;
    return [{ problem: 'different', kind: 'transaction', id: ours.id, issuerId, detail }];
  });
}

// What a person has said of an element may differ.
const bookedAs = readStatement(
  (_, { ids }: { ids: string[] }) => sql<{
    id: string;
    network_transaction_id: string;
    type: 'purchase' | 'refund';
    amount_cents: string;
  }>`
    SELECT t.id, t.network_transaction_id, t.type, t.amount_cents FROM card_transaction t
    WHERE t.mode = 'live' AND t.network_transaction_id = ANY (${ids}::text[]) AND t.type <> 'decline'
      AND NOT EXISTS (SELECT FROM payment_element e WHERE e.id = t.network_transaction_id)`,
  { acrossTenants: 'network' },
);

interface CardOfPayment {
  card_id: string | null;
  status: CardStatus | null;
  is_booked: boolean;
  is_waiting: boolean;
  /** Our card with the network's id. */
  named_id: string | null;
  /** It was booked on another one, which had that id by mistake. */
  is_misplaced: boolean;
}

// If no card of ours has the network's id, a person may have said which one a payment is on.
const cardsOf = readStatement(
  (_, values: { paymentIds: string[]; networkCardIds: string[] }) => sql<CardOfPayment>`
    SELECT c.id AS card_id, c.status, y.card_id IS NOT NULL AS is_booked,
      EXISTS (SELECT FROM network_inbox i WHERE i.id = l.payment_id AND i.reason IS NOT NULL) AS is_waiting,
      k.id AS named_id, y.card_id IS NOT NULL AND coalesce(k.id <> y.card_id,
        NOT EXISTS (SELECT FROM payment_element e WHERE e.payment_id = l.payment_id)) AS is_misplaced
    FROM unnest(${values.paymentIds}::text[], ${values.networkCardIds}::text[])
      WITH ORDINALITY l (payment_id, network_card_id, place)
    LEFT JOIN payment y ON y.mode = 'live' AND y.payment_id = l.payment_id
    LEFT JOIN card k ON k.network_card_id = l.network_card_id AND k.mode = 'live'
    LEFT JOIN card c ON c.id = coalesce(y.card_id, k.id)
    ORDER BY l.place`,
  { acrossTenants: 'network' },
);

/**
 * What the network has to be asked about by its id, because it began before the period and something in it
 * may be new: our pending authorizations, the newest first, and what open findings are about.
 */
const readOlderPayments = readStatement(
  (_, values: { runId: string; network: string; until: string; limit: number }) => sql<{ id: string }>`
    SELECT o.id FROM (
      (SELECT network_authorization_id AS id FROM card_authorization
      WHERE mode = 'live' AND status = 'pending' AND network_authorization_id IS NOT NULL AND id < ${values.until}
      ORDER BY card_authorization.id DESC LIMIT ${values.limit})
      UNION
      (SELECT coalesce(t.network_payment_id, f.issuer_id) FROM reconciliation_finding f
      LEFT JOIN card_transaction t ON t.id = f.object_id AND t.mode = 'live'
      WHERE f.network = ${values.network} AND f.kind = 'transaction' AND f.problem = 'different'
      ORDER BY f.id DESC LIMIT ${values.limit})
    ) o WHERE NOT EXISTS (SELECT FROM reconciliation_seen s
      WHERE s.run_id = ${values.runId} AND s.kind = 'authorization' AND s.key = o.id)`,
  { acrossTenants: 'network' },
);
