import type { z } from 'zod';
import { FeePlan } from '../domain/fees.ts';
import { Refusal } from '../domain/refusal.ts';
import { WrongUsage } from '../operator/errors.ts';
import { ControlsJson, ModeName, OnOff, SignedCents, Text, WholeNumber } from '../operator/flag-values.ts';
import { presentAmounts } from '../operator/render.ts';
import {
  argument,
  flag,
  list,
  type Noun,
  needed,
  oneOf,
  reason,
  show,
  toggle,
  verb,
} from '../operator/verbs.ts';
import { notifyEvents } from '../platform/db/notifications.ts';
import type { Operator } from '../requests/operator-context.ts';
import { adjustBalance, approveAdjustment, rejectAdjustment } from './adjust-balance.ts';
import { AccountLimits } from './limits-rules.ts';
import {
  controlSpending,
  createPartner,
  negotiateFees,
  negotiateLimits,
  type PartnerChanges,
  resumePartner,
  suspendPartner,
  updatePartner,
} from './partners.ts';
import {
  FEE_FIELDS,
  LIMIT_FIELDS,
  type PlanField,
  readAdjustmentRequest,
  readAdjustmentRequests,
  readPartner,
  readPartners,
} from './reads.ts';

const ID = argument('of the partner');
const WHY = reason('why, for the audit log');

export const partnerNoun: Noun = {
  create: verb({
    about: "open an account with the platform's fees and limits",
    takes: {
      name: needed('<name>', "the partner's name", Text(255)),
      secureDetails: toggle('let it reveal card numbers'),
    },
    examples: ['--name "Acme Ltd"'],
    async run({ name, secureDetails }, { session }) {
      const asked = { name, secureDetailsEnabled: secureDetails };
      const value = await createPartner(await session.operator(), asked);
      const note = `Create its keys with "operator key create ${value.id} --mode test" and --mode live.`;
      return { value, note };
    },
  }),

  list: verb({
    about: 'all accounts, newest first',
    examples: ['', '--json'],
    run: async (_, { session }) => ({
      value: await readPartners(await session.orm()),
      columns: ['id', 'name', 'secure_details', 'suspended_at', 'created'],
      note: 'See all of one with "operator partner show ID"; open one with "operator partner create --name N".',
    }),
  }),

  show: show({
    about: 'one account with its fees and limits',
    id: 'of the partner',
    example: 'prt_01k0…',
    read: readPartner,
  }),

  update: verb({
    about: 'rename an account, or change whether it can reveal card numbers',
    takes: {
      id: ID,
      name: flag('<name>', "the partner's name", Text(255)),
      secureDetails: flag('<on|off>', 'whether it can reveal card numbers', OnOff),
    },
    examples: ['prt_01k0… --secure-details on'],
    async run({ id, name, secureDetails }, { session }) {
      if (name === null && secureDetails === null) throw new WrongUsage('give --name or --secure-details');
      const changes: PartnerChanges = {};
      if (name !== null) changes.name = name;
      if (secureDetails !== null) changes.secureDetailsEnabled = secureDetails;
      await updatePartner(await session.operator(), id, changes);
      return { value: await readPartner(await session.orm(), id) };
    },
  }),

  suspend: suspensionVerb(
    suspendPartner,
    'refuse all keys of an account, within 5 seconds; its money, cards and webhooks go on',
    'Its keys get 403 account_suspended within 5 seconds. End it with "operator partner resume ID --reason R".',
    'It was suspended already: nothing has changed.',
  ),

  resume: suspensionVerb(
    resumePartner,
    "end a suspension: the account's keys that are not revoked work again within 5 seconds",
    'Its keys work again within 5 seconds.',
    'It was not suspended: nothing has changed.',
  ),

  fees: planVerb({
    plan: 'fees',
    what: 'what an account pays, in cents and basis points',
    example: '--card-activation 50 --card-funding-bps 150',
    fields: FEE_FIELDS,
    schema: FeePlan.shape,
    change: negotiateFees,
  }),

  limits: planVerb({
    plan: 'limits',
    what: 'the limits of an account, which count per mode',
    example: '--max-card 500000 --max-open-cards 2000',
    fields: LIMIT_FIELDS,
    schema: AccountLimits.shape,
    change: negotiateLimits,
  }),

  controls: verb({
    about:
      'show what merchants the cards of an account can pay, and how much; with a flag, replace that. It holds for each card by ' +
      'itself, in both modes',
    takes: {
      id: ID,
      set: flag('<json>', 'the controls, as a partner sends them for a card', ControlsJson, 'clear'),
      clear: toggle('remove them'),
    },
    examples: ['prt_01k0…', `prt_01k0… --set '{"blocked_categories":["7995"]}'`, 'prt_01k0… --clear'],
    async run({ id, set, clear }, { session }) {
      if (set !== null && session.config.increase?.asksForDecisions === false) {
        throw new Refusal(
          'Spending controls can not be set: with INCREASE_REAL_TIME_DECISIONS=false, Increase approves without asking us, so that ' +
            'live cards would not keep to them. Nothing was changed.',
        );
      }
      if (set !== null || clear) await controlSpending(await session.operator(), id, set);
      const { spending_controls } = await readPartner(await session.orm(), id);
      return { value: { partner_id: id, spending_controls } };
    },
  }),

  adjust: verb({
    about: 'credit or debit the prepaid balance by hand; a debit cannot exceed the available balance',
    takes: {
      id: ID,
      mode: needed('<mode>', 'test or live', ModeName),
      amount: needed('<cents>', 'positive for a credit, negative for a debit', SignedCents),
      reason: WHY,
      key: flag(
        '<key>',
        'an idempotency key: with the same key, the adjustment is made only once',
        Text(255),
      ),
    },
    examples: [
      'prt_01k0… --mode live --amount 250000 --reason "wire of 2 March" --key wire-0302',
      'prt_01k0… --mode live --amount -500 --reason "goodwill of 1 March taken back"',
    ],
    async run({ id: partnerId, mode, amount, reason, key }, { session }) {
      const adjustment = { partnerId, mode, amountCents: amount, reason, key };
      const { adjustmentApprovalCents } = session.config;
      const adjusted = await adjustBalance(await session.operator(), adjustment, adjustmentApprovalCents);
      if (!('balance' in adjusted)) {
        const value = await readAdjustmentRequest(await session.orm(), adjusted.adjustmentId);
        const note = `Nothing is booked yet: another operator has to run "operator adjustment approve ${value.id}".`;
        return { value, note };
      }
      // Its balance may have crossed the threshold of an alert.
      await notifyEvents(await session.orm());
      const { adjustmentId: id, createdAt, balance } = adjusted;
      const object = 'balance_adjustment';
      const booked = { balance: presentAmounts(balance), created: createdAt.toISOString() };
      return { value: { id, object, partner_id: partnerId, mode, amount, reason, key, ...booked } };
    },
  }),
};

function suspensionVerb(change: typeof suspendPartner, about: string, done: string, repeated: string) {
  return verb({
    about,
    takes: { id: ID, reason: WHY },
    examples: ['prt_01k0… --reason "key published, ticket 4711"'],
    async run({ id, reason }, { session }) {
      const isNew = await change(await session.operator(), id, reason);
      const note = isNew ? done.replace('ID', id) : repeated;
      return { value: await readPartner(await session.orm(), id), note };
    },
  });
}

interface PlanVerb<Plan> {
  plan: 'fees' | 'limits';
  what: string;
  example: string;
  fields: readonly PlanField<Plan>[];
  /** The values that each field accepts. */
  schema: Record<keyof Plan, z.ZodType<number, number>>;
  change(operator: Operator, partnerId: string, changes: Partial<Plan>): Promise<unknown>;
}

/** A verb that shows an account's fees or limits or, with flags, changes them. */
function planVerb<Plan extends FeePlan | AccountLimits>({
  plan,
  what,
  example,
  fields,
  schema,
  change,
}: PlanVerb<Plan>) {
  const flags = fields.map(([field, name, unit, help]) => [
    name,
    flag(`<${unit}>`, help, WholeNumber(schema[field])),
  ]);
  return verb({
    about: `show ${what}; with flags, change these values for the account`,
    takes: { id: ID, ...(Object.fromEntries(flags) as Record<string, ReturnType<typeof flag<number>>>) },
    examples: ['prt_01k0…', `prt_01k0… ${example}`],
    async run({ id, ...given }: Record<string, number | null> & { id: never }, { session }) {
      const values = fields.map(([field, name]) => [field, given[name]]);
      const changes = values.filter(([, value]) => value !== null);
      if (changes.length > 0) await change(await session.operator(), id, Object.fromEntries(changes));
      return { value: (await readPartner(await session.orm(), id))[plan] };
    },
  });
}

export const adjustmentNoun: Noun = {
  list: list({
    about: 'large adjustments that wait for a second operator, or were decided, newest first',
    takes: { status: flag('<status>', 'only those', oneOf(['pending', 'approved', 'rejected'])) },
    examples: ['--status pending'],
    columns: 'id status partner_name mode amount reason requested_by decided_by created',
    read: readAdjustmentRequests,
  }),

  approve: verb({
    about: 'approve an adjustment that another operator asked for, and book it',
    takes: { id: argument('of the adjustment') },
    examples: ['adj_01k0…'],
    async run({ id }, { session }) {
      const { balance } = await approveAdjustment(await session.operator(), id);
      await notifyEvents(await session.orm());
      const request = await readAdjustmentRequest(await session.orm(), id);
      return { value: { ...request, balance: presentAmounts(balance) } };
    },
  }),

  reject: verb({
    about: 'reject an adjustment that waits, so that it is never booked',
    takes: {
      id: argument('of the adjustment'),
      reason: reason('why, for whoever asked and for the audit log'),
    },
    examples: ['adj_01k0… --reason "the wire was for somebody else"'],
    async run({ id, reason }, { session }) {
      await rejectAdjustment(await session.operator(), id, reason);
      return { value: await readAdjustmentRequest(await session.orm(), id) };
    },
  }),
};
