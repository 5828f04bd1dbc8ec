import type { FeePlan } from '../domain/fees.ts';
import type { AccountLimits } from '../domain/limits.ts';

/** A field of a fee plan or of limits, as this command line names it. */
export interface PlanField<Plan> {
  field: keyof Plan & string;
  /** In JSON; the flag has dashes for the underscores. */
  name: string;
  /** What the flag's help calls its value. */
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

/** A plan as JSON: `negotiated` says whether it is the account's own or the platform's. */
export function presentPlan<Plan extends FeePlan | AccountLimits>(
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
