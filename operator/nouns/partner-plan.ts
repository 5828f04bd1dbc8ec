import { type Command, Option } from 'commander';
import type { z } from 'zod';
import type { Operator } from '../../commands/accounts/operator-context.ts';
import type { FeePlan } from '../../domain/fees.ts';
import type { AccountLimits } from '../../domain/limits.ts';
import { read, WholeNumber } from '../flag-values.ts';
import type { PlanField } from '../plan-fields.ts';
import { readPartner } from '../reads/read-partners.ts';
import type { Verbs } from '../verbs.ts';

export interface PlanVerb<Plan> {
  name: 'fees' | 'limits';
  what: string;
  example: string;
  fields: readonly PlanField<Plan>[];
  /** What each field may be. */
  schema: Record<keyof Plan, z.ZodType<number, number>>;
  change(operator: Operator, partnerId: string, changes: Partial<Plan>): Promise<void>;
}

/** A verb that shows a plan or, with flags, replaces those values of it; the account has a plan of its own from then on. */
export function planVerb<Plan extends FeePlan | AccountLimits>(
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
