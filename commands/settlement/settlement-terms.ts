import type { EntityManager } from '@mikro-orm/postgresql';
import { cardColumns, transactionColumns } from '../../db/columns.ts';
import { query } from '../../db/sql.ts';
import { DEFAULT_FEE_PLAN, FeePlan } from '../../domain/fees.ts';
import type { CardRow } from '../../resources/card.ts';
import type { TransactionRow } from '../../resources/transaction.ts';
import type { Settlement } from './settlement.ts';

/** What settlements are decided on, by the settlement's place. */
export interface SettlementTerms {
  /** Undefined where the account has no such card in this mode. */
  card: CardRow | undefined;
  /** On the card before the first of them. */
  cardBalanceCents: number;
  /** What its pending top-ups would add. */
  arrivingCents: bigint;
  feePlan: FeePlan;
  /** What has its network transaction id already. */
  known: TransactionRow | null;
}

/**
 * Locks the cards, in the order of their ids: whoever changes a card's status or balance locks it first. Then reads, in
 * a later statement, since a wait does not refresh its own statement's snapshot.
 */
export async function lockSettlementTerms(
  tx: EntityManager,
  settlements: readonly Settlement[],
  longestLockWaitMs: number | null,
): Promise<SettlementTerms[]> {
  const cardIds = [...new Set(settlements.map((settlement) => settlement.cardId))];
  const cards = await query<CardRow>(tx, LOCK, [cardIds, longestLockWaitMs]);
  const byId = new Map(cards.map((card) => [card.id, card]));
  const rows = await query<TermsRow>(tx, TERMS, [
    settlements.map((settlement) => settlement.cardId),
    settlements.map((settlement) => settlement.partnerId),
    settlements.map((settlement) => settlement.mode),
    settlements.map((settlement) => settlement.networkTransactionId),
  ]);
  return settlements.map(({ cardId, partnerId, mode }, index) => {
    const { card_posted, arriving, fee_plan, ...known } = rows[index] as TermsRow;
    const card = byId.get(cardId);
    return {
      card: card?.partner_id === partnerId && card.mode === mode ? card : undefined,
      cardBalanceCents: Number(card_posted ?? 0),
      arrivingCents: BigInt(arriving),
      feePlan: fee_plan === null ? DEFAULT_FEE_PLAN : FeePlan.parse(fee_plan),
      known: known.id === null ? null : (known as TransactionRow),
    };
  });
}

// An array of unknown length, so that these are planned once: PostgreSQL plans anew for each array it can count.
const list = (parameter: string) => `(SELECT ${parameter}::text[])`;

// The transaction's lock_timeout is set on the way, before the first row is locked: it costs no round trip of its own.
const LOCK = `
  SELECT ${cardColumns('c')} FROM card c
  WHERE c.id = ANY(${list('$1')}::text[]) AND (SELECT set_config('lock_timeout', coalesce($2, current_setting('lock_timeout')), true)) IS NOT NULL
  ORDER BY c.id FOR NO KEY UPDATE`;

// Row by row by index (that is what LIMIT is for), whatever the tables' sizes were when it was planned.
const TERMS = `
  SELECT a.posted AS card_posted, p.fee_plan, t.*,
    coalesce((SELECT sum(o.amount_cents) FROM topup o WHERE o.card_id = s.card_id AND o.status = 'pending'), 0) AS arriving
  FROM unnest(${['$1', '$2', '$3', '$4'].map(list).join(', ')}) WITH ORDINALITY
    s (card_id, partner_id, mode, network_transaction_id, place)
  LEFT JOIN LATERAL (SELECT posted FROM ledger.account WHERE card_id = s.card_id LIMIT 1) a ON true
  LEFT JOIN LATERAL (SELECT fee_plan FROM partner WHERE id = s.partner_id LIMIT 1) p ON true
  LEFT JOIN LATERAL (
    SELECT ${transactionColumns('t')} FROM card_transaction t
    WHERE t.mode = s.mode AND t.network_transaction_id = s.network_transaction_id LIMIT 1
  ) t ON true
  ORDER BY s.place`;

type TermsRow = { card_posted: string | null; arriving: string; fee_plan: unknown } & (
  | TransactionRow
  | { [Column in keyof TransactionRow]: null }
);
