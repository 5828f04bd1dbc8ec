import { type Command, Option } from 'commander';
import type { z } from 'zod';
import { FeePlan } from '../domain/fees.ts';
import type { Mode } from '../domain/mode.ts';
import { Refusal } from '../domain/refusal.ts';
import type { SpendingControls } from '../domain/spending-controls.ts';
import { WrongUsage } from '../operator/errors.ts';
import {
  ControlsJson,
  ModeName,
  OnOff,
  read,
  SignedCents,
  Text,
  WholeNumber,
} from '../operator/flag-values.ts';
import { presentAmounts } from '../operator/render.ts';
import type { Verbs } from '../operator/verbs.ts';
import type { Operator } from '../requests/operator-context.ts';
import { adjustBalance } from './adjust-balance.ts';
import { readRequest } from './adjustment-operator-reads.ts';
import { AccountLimits } from './limits-rules.ts';
import { FEE_FIELDS, LIMIT_FIELDS, type PlanField, readPartner, readPartners } from './operator-reads.ts';
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

const NAME = read(Text(255));

export function partnerNoun(partner: Command, verbs: Verbs): void {
  const { session, verb, examples } = verbs;
  partner.addHelpText('after', examples('partner list', 'partner create --name "Acme Ltd"'));

  partner
    .command('create')
    .description("open an account with the platform's fees and limits")
    .requiredOption('--name <name>', "the partner's name", NAME)
    .option('--secure-details', 'let it reveal card numbers')
    .addHelpText('after', examples('partner create --name "Acme Ltd"'))
    .action(
      verb(async ({ name, secureDetails = false }: { name: string; secureDetails?: boolean }) => {
        const value = await createPartner(await session.operator(), {
          name,
          secureDetailsEnabled: secureDetails,
        });
        return {
          value,
          note: `Create its keys with "operator key create ${value.id} --mode test" and --mode live.`,
        };
      }),
    );

  partner
    .command('list')
    .description('all accounts, newest first')
    .addHelpText('after', examples('partner list', 'partner list --json'))
    .action(
      verb(async () => ({
        value: await readPartners(await session.orm()),
        columns: ['id', 'name', 'secure_details', 'suspended_at', 'created'],
        note: 'See all of one with "operator partner show ID"; open one with "operator partner create --name N".',
      })),
    );

  partner
    .command('show')
    .description('one account with its fees and limits')
    .argument('<id>', 'of the partner')
    .addHelpText('after', examples('partner show prt_01k0…'))
    .action(verb(async (id: string) => ({ value: await readPartner(await session.orm(), id) })));

  partner
    .command('update')
    .description('rename an account, or change whether it can reveal card numbers')
    .argument('<id>', 'of the partner')
    .option('--name <name>', "the partner's name", NAME)
    .option('--secure-details <on|off>', 'whether it can reveal card numbers', read(OnOff))
    .addHelpText('after', examples('partner update prt_01k0… --secure-details on'))
    .action(
      verb(async (id: string, { name, secureDetails }: { name?: string; secureDetails?: boolean }) => {
        if (name === undefined && secureDetails === undefined)
          throw new WrongUsage('give --name or --secure-details');
        const changes: PartnerChanges = {};
        if (name !== undefined) changes.name = name;
        if (secureDetails !== undefined) changes.secureDetailsEnabled = secureDetails;
        await updatePartner(await session.operator(), id, changes);
        return { value: await readPartner(await session.orm(), id) };
      }),
    );

  partner
    .command('suspend')
    .description('refuse all keys of an account, within 5 seconds; its money, cards and webhooks go on')
    .argument('<id>', 'of the partner')
    .requiredOption('--reason <reason>', 'why, for the audit log', read(Text(500)))
    .addHelpText('after', examples('partner suspend prt_01k0… --reason "key published, ticket 4711"'))
    .action(
      verb(async (id: string, { reason }: { reason: string }) => {
        const isNew = await suspendPartner(await session.operator(), id, reason);
        const note = isNew
          ? `Its keys get 403 account_suspended within 5 seconds. End it with "operator partner resume ${id} --reason R".`
          : 'It was suspended already: nothing has changed.';
        return { value: await readPartner(await session.orm(), id), note };
      }),
    );

  partner
    .command('resume')
    .description("end a suspension: the account's keys that are not revoked work again within 5 seconds")
    .argument('<id>', 'of the partner')
    .requiredOption('--reason <reason>', 'why, for the audit log', read(Text(500)))
    .addHelpText('after', examples('partner resume prt_01k0… --reason "keys replaced, ticket 4711"'))
    .action(
      verb(async (id: string, { reason }: { reason: string }) => {
        const isNew = await resumePartner(await session.operator(), id, reason);
        const note = isNew
          ? 'Its keys work again within 5 seconds.'
          : 'It was not suspended: nothing has changed.';
        return { value: await readPartner(await session.orm(), id), note };
      }),
    );

  planVerb(partner, verbs, {
    name: 'fees',
    what: 'what an account pays, in cents and basis points',
    example: '--card-activation 50 --card-funding-bps 150',
    fields: FEE_FIELDS,
    schema: FeePlan.shape,
    change: negotiateFees,
  });
  planVerb(partner, verbs, {
    name: 'limits',
    what: 'the limits of an account, which count per mode',
    example: '--max-card 500000 --max-open-cards 2000',
    fields: LIMIT_FIELDS,
    schema: AccountLimits.shape,
    change: negotiateLimits,
  });
  controlsVerb(partner, verbs);
  adjustVerb(partner, verbs);
}

interface ControlsFlags {
  set?: SpendingControls | null;
  clear?: boolean;
}

function controlsVerb(partner: Command, { session, verb, examples }: Verbs): void {
  partner
    .command('controls')
    .description(
      'show what merchants the cards of an account can pay, and how much; with a flag, replace that. It holds for each card by ' +
        'itself, in both modes',
    )
    .argument('<id>', 'of the partner')
    .addOption(
      new Option('--set <json>', 'the controls, as a partner sends them for a card')
        .argParser(read(ControlsJson))
        .conflicts('clear'),
    )
    .option('--clear', 'remove them')
    .addHelpText(
      'after',
      examples(
        'partner controls prt_01k0…',
        `partner controls prt_01k0… --set '{"blocked_categories":["7995"]}'`,
        'partner controls prt_01k0… --clear',
      ),
    )
    .action(
      verb(async (id: string, { set, clear = false }: ControlsFlags) => {
        if (set !== undefined && session.config.increase?.asksForDecisions === false) {
          throw new Refusal(
            'Spending controls can not be set: with INCREASE_REAL_TIME_DECISIONS=false, Increase approves without asking us, so that ' +
              'live cards would not keep to them. Nothing was changed.',
          );
        }
        if (set !== undefined || clear) await controlSpending(await session.operator(), id, set ?? null);
        const { spending_controls } = await readPartner(await session.orm(), id);
        return { value: { partner_id: id, spending_controls } };
      }),
    );
}

interface AdjustFlags {
  mode: Mode;
  amount: number;
  reason: string;
  key?: string | null;
}

function adjustVerb(partner: Command, { session, verb, examples }: Verbs): void {
  partner
    .command('adjust')
    .description('credit or debit the prepaid balance by hand; a debit cannot exceed the available balance')
    .argument('<id>', 'of the partner')
    .requiredOption('--mode <mode>', 'test or live', read(ModeName))
    .requiredOption('--amount <cents>', 'positive for a credit, negative for a debit', read(SignedCents))
    .requiredOption('--reason <reason>', 'why, for the audit log', read(Text(500)))
    .option(
      '--key <key>',
      'an idempotency key: with the same key, the adjustment is made only once',
      read(Text(255)),
    )
    .addHelpText(
      'after',
      examples(
        'partner adjust prt_01k0… --mode live --amount 250000 --reason "wire of 2 March" --key wire-0302',
        'partner adjust prt_01k0… --mode live --amount -500 --reason "goodwill of 1 March taken back"',
      ),
    )
    .action(
      verb(async (partnerId: string, { mode, amount, reason, key = null }: AdjustFlags) => {
        const operator = await session.operator();
        const adjustment = { partnerId, mode, amountCents: amount, reason, key };
        const { adjustmentApprovalCents } = session.config;
        const adjusted = await adjustBalance(operator, adjustment, adjustmentApprovalCents);
        if (!('balance' in adjusted)) {
          const value = await readRequest(await session.orm(), adjusted.adjustmentId);
          const note = `Nothing is booked yet: another operator has to run "operator adjustment approve ${value.id}".`;
          return { value, note };
        }
        const { adjustmentId, createdAt, balance } = adjusted;
        return {
          value: {
            id: adjustmentId,
            object: 'balance_adjustment',
            partner_id: partnerId,
            mode,
            amount,
            reason,
            key,
            balance: presentAmounts(balance),
            created: createdAt.toISOString(),
          },
        };
      }),
    );
}

interface PlanVerb<Plan> {
  name: 'fees' | 'limits';
  what: string;
  example: string;
  fields: readonly PlanField<Plan>[];
  /** The values that each field accepts. */
  schema: Record<keyof Plan, z.ZodType<number, number>>;
  change(operator: Operator, partnerId: string, changes: Partial<Plan>): Promise<void>;
}

/** A verb that shows an account's fees or limits or, with flags, changes them. */
function planVerb<Plan extends FeePlan | AccountLimits>(
  partner: Command,
  { session, verb, examples }: Verbs,
  { name, what, example, fields, schema, change }: PlanVerb<Plan>,
): void {
  const flags = fields.map(({ field, name: flag, unit, help }) => ({
    field,
    option: new Option(`--${flag.replaceAll('_', '-')} <${unit}>`, help).argParser(
      read(WholeNumber(schema[field])),
    ),
  }));
  const command = partner
    .command(name)
    .description(`show ${what}; with flags, change these values for the account`)
    .argument('<id>', 'of the partner')
    .addHelpText('after', examples(`partner ${name} prt_01k0…`, `partner ${name} prt_01k0… ${example}`));
  for (const { option } of flags) command.addOption(option);
  command.action(
    verb(async (id: string, options: Record<string, number>) => {
      const given = flags.filter(({ option }) => options[option.attributeName()] !== undefined);
      const changes = given.map(({ field, option }) => [field, options[option.attributeName()]]);
      if (changes.length > 0) await change(await session.operator(), id, Object.fromEntries(changes));
      return { value: (await readPartner(await session.orm(), id))[name] };
    }),
  );
}
