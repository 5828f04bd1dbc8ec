import type { Command } from 'commander';
import {
  createPartner,
  negotiateFees,
  negotiateLimits,
  updatePartner,
} from '../../commands/accounts/partners.ts';
import { FeePlan } from '../../domain/fees.ts';
import { AccountLimits } from '../../domain/limits.ts';
import { WrongUsage } from '../errors.ts';
import { OnOff, read, Text } from '../flag-values.ts';
import { FEE_FIELDS, LIMIT_FIELDS } from '../plan-fields.ts';
import { readPartner, readPartners } from '../reads/read-partners.ts';
import type { Verbs } from '../verbs.ts';
import { adjustVerb } from './partner-adjust.ts';
import { planVerb } from './partner-plan.ts';

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
        columns: ['id', 'name', 'secure_details', 'created'],
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
        await updatePartner(await session.operator(), id, {
          ...(name !== undefined && { name }),
          ...(secureDetails !== undefined && { secureDetailsEnabled: secureDetails }),
        });
        return { value: await readPartner(await session.orm(), id) };
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
  adjustVerb(partner, verbs);
}
