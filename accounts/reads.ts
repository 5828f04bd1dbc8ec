import { sql } from 'kysely';
import { accountTime } from '../domain/account-clock.ts';
import { DEFAULT_FEE_PLAN, type FeePlan } from '../domain/fees.ts';
import { isoTime } from '../domain/iso-time.ts';
import { unknownId } from '../domain/refusal.ts';
import { completeControls, type SpendingControls } from '../domain/spending-controls.ts';
import type { Orm } from '../platform/db/orm.ts';
import { readStatement } from '../platform/db/sql.ts';
import { type AccountLimits, DEFAULT_LIMITS } from './limits-rules.ts';
import { type Partner, PartnerEntity } from './tables.ts';
import { readAccountClock } from './test-clock.ts';

/** An account as the command line shows it; amounts are in cents. */
interface PartnerResource {
  id: string;
  object: 'partner';
  name: string;
  secure_details: boolean;
  /** Since when its keys are refused, and why; null if they are not. */
  suspended_at: string | null;
  suspension_reason: string | null;
  fees: Record<string, unknown>;
  limits: Record<string, unknown>;
  /** For each of its cards; null without any. */
  spending_controls: SpendingControls | null;
  created: string;
}

/** Newest first. */
export async function readPartners(orm: Orm): Promise<PartnerResource[]> {
  const partners = await orm.em.fork().findAll(PartnerEntity, { orderBy: { id: 'desc' } });
  return partners.map(presentPartner);
}

/**
 * An account, with what time it is in its test mode and how far that is ahead of real time; null if it never
 * advanced it.
 * @throws Refusal if there is no such account
 */
export async function readPartner(
  orm: Orm,
  partnerId: string,
): Promise<PartnerResource & { test_clock: { now: string; offset_seconds: number } | null }> {
  const partner = await orm.em.fork().findOne(PartnerEntity, partnerId);
  if (partner === null) throw unknownId('prt', partnerId, 'run "operator partner list"');
  const clock = await readAccountClock(orm.em.fork(), partnerId);
  const shown = clock && { now: accountTime(clock).toISOString(), offset_seconds: clock.offsetSeconds };
  return { ...presentPartner(partner), test_clock: shown };
}

/** The names of these accounts, by id. */
export async function readPartnerNames(
  orm: Orm,
  partnerIds: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  if (partnerIds.length === 0) return new Map();
  const found = await orm.em
    .fork()
    .find(PartnerEntity, { id: { $in: [...new Set(partnerIds)] } }, { fields: ['id', 'name'] });
  return new Map(found.map(({ id, name }) => [id, name]));
}

function presentPartner(partner: Partner): PartnerResource {
  return {
    id: partner.id,
    object: 'partner',
    name: partner.name,
    secure_details: partner.secureDetailsEnabled,
    suspended_at: partner.suspendedAt?.toISOString() ?? null,
    suspension_reason: partner.suspensionReason ?? null,
    fees: presentPlan(FEE_FIELDS, partner.feePlan ?? null, DEFAULT_FEE_PLAN),
    limits: presentPlan(LIMIT_FIELDS, partner.limits ?? null, DEFAULT_LIMITS),
    spending_controls: completeControls(partner.spendingControls ?? null),
    created: partner.createdAt.toISOString(),
  };
}

/**
 * A field of a fee plan or of limits; its name in JSON, and in a flag with dashes; its unit, and what it is,
 * in the help.
 */
export type PlanField<Plan> = readonly [field: keyof Plan & string, name: string, unit: string, help: string];

export const FEE_FIELDS: readonly PlanField<FeePlan>[] = [
  ['cardActivationCents', 'card_activation', 'cents', 'for each card issued'],
  ['cardFundingBasisPoints', 'card_funding_bps', 'basis points', 'of the amount put on a card'],
  ['cardFundingMinCents', 'card_funding_min', 'cents', 'the least that funding a card costs'],
  ['transactionFlatCents', 'transaction_flat', 'cents', 'for each purchase'],
  ['transactionBasisPoints', 'transaction_bps', 'basis points', "of a purchase's amount"],
  ['declineFlatCents', 'decline_flat', 'cents', 'for each declined purchase'],
];

export const LIMIT_FIELDS: readonly PlanField<AccountLimits>[] = [
  ['minCardCents', 'min_card', 'cents', 'smallest amount of a card or top-up'],
  ['maxCardCents', 'max_card', 'cents', 'largest amount of a card or top-up'],
  ['maxOpenCards', 'max_open_cards', 'number', 'cards pending, active or frozen'],
  ['maxIssuedPerDayCents', 'max_issued_per_day', 'cents', 'loaded by issuance and top-up in a UTC day'],
];

/** A plan as JSON; `negotiated` is false if it is the platform's. */
function presentPlan<Plan extends FeePlan | AccountLimits>(
  fields: readonly PlanField<Plan>[],
  own: Plan | null,
  platform: Plan,
): Record<string, unknown> {
  const plan = own ?? platform;
  const values = fields.map(([field, name]) => [name, plan[field]]);
  return { ...Object.fromEntries(values), negotiated: own !== null };
}

/** Adjustments that wait for a second operator, or were decided, newest first. */
export async function readAdjustmentRequests(
  orm: Orm,
  { status, limit }: { status: string | null; limit: number },
) {
  return (await selectRequests(orm.em.fork(), { status, limit })).map(presentRequest);
}

/** @throws Refusal if there is no such request */
export async function readAdjustmentRequest(orm: Orm, id: string) {
  const [row] = await selectRequest(orm.em.fork(), { id });
  if (row === undefined) throw unknownId('adj', id, 'run "operator adjustment list"');
  return presentRequest(row);
}

type RequestRow = { id: string; amount: string; created: string; decided: string | null };

// The logins are the database's; the others are OPERATOR, or user@host.
const REQUEST = sql`
  SELECT r.id, 'adjustment_request' AS object, r.status, r.partner_id, p.name AS partner_name, r.mode,
    r.amount_cents AS amount,
    r.reason, r.key, r.requested_by, r.requested_login, r.decided_by, r.decided_login, r.decision_reason,
    r.created_at AS created, r.decided_at AS decided
  FROM adjustment_request r JOIN partner p ON p.id = r.partner_id`;

const selectRequests = readStatement(
  (_, { status, limit }: { status: string | null; limit: number }) => sql<RequestRow>`
    ${REQUEST} WHERE r.status = coalesce(${status}, r.status) ORDER BY r.id DESC LIMIT ${limit}`,
  { acrossTenants: 'operator' },
);

const selectRequest = readStatement(
  (_, { id }: { id: string }) => sql<RequestRow>`${REQUEST} WHERE r.id = ${id}`,
  { acrossTenants: 'operator' },
);

const presentRequest = (row: RequestRow) => ({
  ...row,
  amount: Number(row.amount),
  created: isoTime(row.created),
  decided: isoTime(row.decided),
});

interface KeyFilter {
  /** Null for all accounts. */
  partner: string | null;
  before: string | null;
  limit: number;
}

/** API keys without their secret parts, which are not stored: newest first, with revoked ones. */
export async function readApiKeys(orm: Orm, { partner, before, limit }: KeyFilter) {
  return (await selectKeys(orm.em.fork(), { partner, before, limit })).map(presentKey);
}

/** @throws Error if there is no such key */
export async function readApiKey(orm: Orm, id: string) {
  const [row] = await selectKey(orm.em.fork(), { id });
  if (row === undefined) throw new Error('there is no such key');
  return presentKey(row);
}

interface KeyRow {
  id: string;
  created: string;
  /** Right within a minute. */
  last_used_at: string | null;
  revoked_at: string | null;
  /** In the account's time. */
  expires_at: string | null;
}

// The hint is the key's first and last characters. It was made by `operator`, or by the partner's key with
// this id.
const KEY = sql`
  SELECT k.id, 'api_key' AS object, k.partner_id, p.name AS partner_name, k.mode, k.name, k.hint,
    k.created_at AS created,
    k.last_used_at, k.revoked_at, k.scopes, k.ip_allowlist, k.expires_at, k.created_by
  FROM api_key k JOIN partner p ON p.id = k.partner_id`;

const selectKeys = readStatement(
  (_, { partner, before, limit }: KeyFilter) => sql<KeyRow>`
    ${KEY} WHERE k.partner_id = coalesce(${partner}, k.partner_id)
    AND (${before}::text IS NULL OR k.id < ${before})
    ORDER BY k.id DESC LIMIT ${limit}`,
  { acrossTenants: 'operator' },
);

const selectKey = readStatement((_, { id }: { id: string }) => sql<KeyRow>`${KEY} WHERE k.id = ${id}`, {
  acrossTenants: 'operator',
});

const presentKey = (row: KeyRow) => ({
  ...row,
  created: isoTime(row.created),
  last_used_at: isoTime(row.last_used_at),
  revoked_at: isoTime(row.revoked_at),
  expires_at: isoTime(row.expires_at),
});
