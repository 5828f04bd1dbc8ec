import { z } from 'zod';
import type { DeclineReason } from './authorization.ts';
import { AmountCents } from './fields.ts';
import { CategoryCode, CountryCode } from './merchant.ts';

const MAX_CODES = 300;
const MAX_LIMITS = 10;

export const LimitInterval = z
  .enum(['per_authorization', 'daily', 'weekly', 'monthly', 'yearly', 'all_time'])
  .meta({
    id: 'LimitInterval',
    description:
      'What a spending limit adds up. `per_authorization`: each authorization or purchase by itself. Days, months and years ' +
      'are in UTC, and weeks begin on Monday.',
  });
export type LimitInterval = z.infer<typeof LimitInterval>;

const codeList = (Code: z.ZodType<string, string>) =>
  z
    .array(Code, { error: 'must be a list' })
    .min(1, 'must not be empty: leave it out, or send null, for no restriction')
    .max(MAX_CODES, `must have at most ${MAX_CODES} codes`)
    .superRefine((codes, ctx) => {
      const twice = codes.find((code, index) => codes.indexOf(code) !== index);
      if (twice !== undefined) ctx.addIssue({ code: 'custom', message: `has ${twice} twice` });
    })
    .meta({ uniqueItems: true })
    .nullable()
    .optional();

const SpendingLimitRequest = z
  .strictObject({
    amount: AmountCents.describe('Cents that can be spent in the interval.'),
    interval: LimitInterval,
    categories: codeList(CategoryCode).describe(
      'Merchant category codes. Only merchants with these count. Leave it out for all.',
    ),
  })
  .meta({ id: 'SpendingLimitRequest', description: 'How much a card can spend in an interval.' });

const PAIRS = [
  ['allowed_categories', 'blocked_categories'],
  ['allowed_merchant_countries', 'blocked_merchant_countries'],
] as const;

/** Spending controls as they are sent (docs/partners/spending-controls.md). */
export const SpendingControlsRequest = z
  .strictObject({
    allowed_categories: codeList(CategoryCode).describe(
      'Merchant category codes (ISO 18245) that the card can pay, and no others. Not with `blocked_categories`.',
    ),
    blocked_categories: codeList(CategoryCode).describe("Merchant category codes that the card can't pay."),
    allowed_merchant_countries: codeList(CountryCode).describe(
      'Countries (ISO 3166-1 alpha-2, in capitals) whose merchants the card can pay, and no others. Not with ' +
        '`blocked_merchant_countries`.',
    ),
    blocked_merchant_countries: codeList(CountryCode).describe(
      "Countries whose merchants the card can't pay.",
    ),
    spending_limits: z
      .array(SpendingLimitRequest, { error: 'must be a list' })
      .min(1, 'must not be empty: leave it out, or send null, for no limit')
      .max(MAX_LIMITS, `must have at most ${MAX_LIMITS} limits`)
      .superRefine((limits, ctx) => {
        const seen = new Set<string>();
        for (const [index, { amount, interval, categories }] of limits.entries()) {
          const limit = `${amount} ${interval} ${[...(categories ?? [])].sort()}`;
          if (seen.has(limit)) {
            ctx.addIssue({ code: 'custom', path: [index], message: 'is the same limit as one before' });
          }
          seen.add(limit);
        }
      })
      .nullable()
      .optional()
      .describe('How much the card can spend. Each limit applies by itself.'),
  })
  .superRefine((controls, ctx) => {
    for (const [allowed, blocked] of PAIRS) {
      if (controls[allowed] == null || controls[blocked] == null) continue;
      ctx.addIssue({ code: 'custom', path: [allowed], message: `can't be given together with ${blocked}` });
      ctx.addIssue({ code: 'custom', path: [blocked], message: `can't be given together with ${allowed}` });
    }
  })
  .meta({ id: 'SpendingControlsRequest', description: 'What merchants a card can pay, and how much.' });
export type SpendingControlsRequest = z.infer<typeof SpendingControlsRequest>;

const SpendingLimit = z
  .object({
    amount: z.int().min(1).describe('Cents that can be spent in the interval.'),
    interval: LimitInterval,
    categories: z
      .array(z.string())
      .nullable()
      .describe('Merchant category codes. Only merchants with these count. Null for all.'),
  })
  .meta({ id: 'SpendingLimitControl', description: 'How much a card can spend in an interval.' });
export type SpendingLimit = z.infer<typeof SpendingLimit>;

/** Spending controls as they are stored and shown. */
export const SpendingControls = z
  .object({
    allowed_categories: z
      .array(z.string())
      .nullable()
      .describe('Merchant category codes that the card can pay, and no others.'),
    blocked_categories: z
      .array(z.string())
      .nullable()
      .describe("Merchant category codes that the card can't pay."),
    allowed_merchant_countries: z
      .array(z.string())
      .nullable()
      .describe('Countries whose merchants the card can pay, and no others.'),
    blocked_merchant_countries: z
      .array(z.string())
      .nullable()
      .describe("Countries whose merchants the card can't pay."),
    spending_limits: z.array(SpendingLimit).nullable().describe('How much the card can spend.'),
  })
  .meta({ id: 'SpendingControls', description: 'What merchants a card can pay, and how much.' });
export type SpendingControls = z.infer<typeof SpendingControls>;

/** Controls with every field, in one order. @returns null if nothing is restricted */
export function completeControls(
  asked: SpendingControlsRequest | SpendingControls | null,
): SpendingControls | null {
  const controls = {
    allowed_categories: asked?.allowed_categories ?? null,
    blocked_categories: asked?.blocked_categories ?? null,
    allowed_merchant_countries: asked?.allowed_merchant_countries ?? null,
    blocked_merchant_countries: asked?.blocked_merchant_countries ?? null,
    spending_limits:
      asked?.spending_limits?.map(({ amount, interval, categories = null }) => ({
        amount,
        interval,
        categories,
      })) ?? null,
  };
  return Object.values(controls).every((control) => control === null) ? null : controls;
}

/** A limit that applies to a card, with what was spent in its current interval. */
export interface LimitSpending extends SpendingLimit {
  source: 'card' | 'account';
  /**
   * What was spent in the interval, in cents. A refund gave back no more than had been spent by then. 0 for a
   * limit per authorization.
   */
  spentCents: number;
  /** When the interval ends; null if it never does. */
  endsAt: Date | null;
}

/** Everything that restricts a card. */
export interface AppliedControls {
  /** The card's, then its account's, of those that have any. */
  controls: readonly SpendingControls[];
  /** The card's first, in the order in which they were given. */
  limits: readonly LimitSpending[];
}

/** A card that nothing restricts. */
export const NO_CONTROLS: AppliedControls = { controls: [], limits: [] };

/** What a merchant asks a card for. */
interface ControlledRequest {
  /** What it adds to what counts, in cents. 0 asks only whether the card can be used there. */
  amountCents: number;
  /** The whole authorization with what was approved of it before, or the purchase. */
  wholeCents: number;
  categoryCode: string | null;
  country: string | null;
}

/** Why spending controls refuse a request (docs/partners/spending-controls.md); null if they don't. */
export function refusalByControls(
  { controls, limits }: AppliedControls,
  { amountCents, wholeCents, categoryCode, country }: ControlledRequest,
): DeclineReason | null {
  for (const { allowed_categories: allowed, blocked_categories: blocked } of controls) {
    if (!isAllowed(categoryCode, allowed, blocked)) return 'merchant_category_not_allowed';
  }
  for (const { allowed_merchant_countries: allowed, blocked_merchant_countries: blocked } of controls) {
    if (!isAllowed(country, allowed, blocked)) return 'merchant_country_not_allowed';
  }
  if (amountCents <= 0) return null;
  for (const limit of limits) {
    if (!countsFor(limit, categoryCode)) continue;
    const afterwardsCents =
      limit.interval === 'per_authorization' ? wholeCents : limit.spentCents + amountCents;
    if (afterwardsCents > limit.amount) return 'spending_limit_exceeded';
  }
  return null;
}

/**
 * A merchant that doesn't say what or where it is passes a list of what is blocked, and none of what is
 * allowed.
 */
function isAllowed(code: string | null, allowed: string[] | null, blocked: string[] | null): boolean {
  if (allowed !== null) return code !== null && allowed.includes(code);
  return blocked === null || code === null || !blocked.includes(code);
}

function countsFor({ categories }: SpendingLimit, categoryCode: string | null): boolean {
  return categories === null || (categoryCode !== null && categories.includes(categoryCode));
}

/** The controls after something more was spent or, below zero, refunded, in the same intervals. */
export function afterSpending(
  { controls, limits }: AppliedControls,
  cents: number,
  categoryCode: string | null,
): AppliedControls {
  return {
    controls,
    limits: limits.map((limit) =>
      limit.interval !== 'per_authorization' && countsFor(limit, categoryCode)
        ? { ...limit, spentCents: Math.max(0, limit.spentCents + cents) }
        : limit,
    ),
  };
}
