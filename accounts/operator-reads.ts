import { accountTime } from '../domain/account-clock.ts';
import { DEFAULT_FEE_PLAN, type FeePlan } from '../domain/fees.ts';
import { unknownId } from '../domain/refusal.ts';
import { completeControls, type SpendingControls } from '../domain/spending-controls.ts';
import type { Orm } from '../platform/db/orm.ts';
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

/** What time it is in the account's test mode, and how far it is ahead of real time; null if it never advanced it. */
interface TestClockShown {
  now: string;
  offset_seconds: number;
}

/** Newest first. */
export async function readPartners(orm: Orm): Promise<PartnerResource[]> {
  const partners = await orm.em.fork().findAll(PartnerEntity, { orderBy: { id: 'desc' } });
  return partners.map(presentPartner);
}

/** An account with its test clock. @throws Refusal if there is no such account. */
export async function readPartner(
  orm: Orm,
  partnerId: string,
): Promise<PartnerResource & { test_clock: TestClockShown | null }> {
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

/** How the command line names a field of a fee plan or of limits. */
export interface PlanField<Plan> {
  field: keyof Plan & string;
  /** The name in JSON; the flag has dashes instead of underscores. */
  name: string;
  /** The flag's value in the help text. */
  unit: 'cents' | 'basis points' | 'number';
  help: string;
}

export const FEE_FIELDS: readonly PlanField<FeePlan>[] = [
  { field: 'cardActivationCents', name: 'card_activation', unit: 'cents', help: 'for each card issued' },
  {
    field: 'cardFundingBasisPoints',
    name: 'card_funding_bps',
    unit: 'basis points',
    help: 'of the amount put on a card',
  },
  {
    field: 'cardFundingMinCents',
    name: 'card_funding_min',
    unit: 'cents',
    help: 'the least that funding a card costs',
  },
  { field: 'transactionFlatCents', name: 'transaction_flat', unit: 'cents', help: 'for each purchase' },
  {
    field: 'transactionBasisPoints',
    name: 'transaction_bps',
    unit: 'basis points',
    help: "of a purchase's amount",
  },
  { field: 'declineFlatCents', name: 'decline_flat', unit: 'cents', help: 'for each declined purchase' },
];

export const LIMIT_FIELDS: readonly PlanField<AccountLimits>[] = [
  { field: 'minCardCents', name: 'min_card', unit: 'cents', help: 'smallest amount of a card or top-up' },
  { field: 'maxCardCents', name: 'max_card', unit: 'cents', help: 'largest amount of a card or top-up' },
  { field: 'maxOpenCards', name: 'max_open_cards', unit: 'number', help: 'cards pending, active or frozen' },
  {
    field: 'maxIssuedPerDayCents',
    name: 'max_issued_per_day',
    unit: 'cents',
    help: 'loaded by issuance and top-up in a UTC day',
  },
];

/** A plan as JSON; `negotiated` is false if it is the platform's. */
function presentPlan<Plan extends FeePlan | AccountLimits>(
  fields: readonly PlanField<Plan>[],
  own: Plan | null,
  platform: Plan,
): Record<string, unknown> {
  const plan = own ?? platform;
  return {
    ...Object.fromEntries(fields.map(({ field, name }) => [name, plan[field]])),
    negotiated: own !== null,
  };
}
