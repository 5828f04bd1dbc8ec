import type { EntityManager } from '@mikro-orm/postgresql';
import { issuableIn, issuableProducts, type Product } from '../db/issuable-products.ts';
import { query } from '../db/sql.ts';
import type { CardStatus } from '../domain/card-status.ts';
import { CreateCardRequest } from '../domain/create-card-request.ts';
import { DEFAULT_FEE_PLAN, FeePlan } from '../domain/fees.ts';
import { AccountLimits, DEFAULT_LIMITS, type Usage } from '../domain/limits.ts';
import type { Mode } from '../domain/mode.ts';
import type { IssuanceContext } from './command-context.ts';
import { openRequest } from './idempotency-response.ts';

/** What an issuance is decided on, read under {@link lockIssuance}. */
export interface IssuanceTerms {
  partnerId: string;
  mode: Mode;
  request: CreateCardRequest;
  answered: boolean;
  /** The card's status where an earlier run of this step has made it already. */
  cardStatus: CardStatus | null;
  feePlan: FeePlan;
  limits: AccountLimits;
  usage: Usage;
  /** What the account may issue, the current product first (decisions.md, "Products"). */
  products: Product[];
}

/**
 * Locks the claim, so that one run of it decides at a time, and the account's usage row, which puts the account's
 * issuances in one order.
 * @returns false where there is no such claim any more: its request was not valid, and it was forgotten.
 */
export async function lockIssuance(tx: EntityManager, claimId: string): Promise<boolean> {
  const [locked] = await query(tx, LOCK, [claimId]);
  return locked !== undefined;
}

/** {@link lockIssuance}, then reads everything the issuance is decided on; null where there is no such claim any more. */
export async function lockIssuanceTerms(
  tx: EntityManager,
  context: IssuanceContext,
  claimId: string,
  cardId: string,
): Promise<IssuanceTerms | null> {
  const locked = await lockIssuance(tx, claimId);
  const [row] = locked ? await query<TermsRow>(tx, TERMS, [claimId, cardId]) : [];
  if (row === undefined) return null;
  return {
    partnerId: row.partner_id,
    mode: row.mode,
    request: CreateCardRequest.parse(openRequest(context.ring, claimId, row.request)),
    answered: row.answered,
    cardStatus: row.card_status,
    feePlan: row.fee_plan === null ? DEFAULT_FEE_PLAN : FeePlan.parse(row.fee_plan),
    limits: row.limits === null ? DEFAULT_LIMITS : AccountLimits.parse(row.limits),
    usage: { openCards: row.open_cards, loadedTodayCents: Number(row.loaded_today_cents) },
    products: issuableIn(row.mode, row.products, context.liveNetworkConfigured),
  };
}

const LOCK = `
  SELECT FROM account_usage u JOIN idempotency_claim c ON c.partner_id = u.partner_id AND c.mode = u.mode
  WHERE c.id = $1
  FOR NO KEY UPDATE`;

// A later statement than the lock: a wait does not refresh its own statement's snapshot. Another transaction can have
// counted a day that began since this one did.
const TERMS = `
  SELECT c.partner_id, c.mode, c.request, c.response_status IS NOT NULL AS answered,
    k.status AS card_status, p.fee_plan, p.limits, u.open_cards,
    CASE WHEN u.loaded_on >= (now() AT TIME ZONE 'UTC')::date THEN u.loaded_cents ELSE 0 END AS loaded_today_cents,
    ${issuableProducts('c.partner_id')} AS products
  FROM idempotency_claim c
  JOIN partner p ON p.id = c.partner_id
  JOIN account_usage u ON u.partner_id = c.partner_id AND u.mode = c.mode
  LEFT JOIN card k ON k.id = $2
  WHERE c.id = $1`;

interface TermsRow {
  partner_id: string;
  mode: Mode;
  request: Buffer;
  answered: boolean;
  card_status: CardStatus | null;
  fee_plan: unknown;
  limits: unknown;
  open_cards: number;
  loaded_today_cents: string;
  products: Product[];
}
