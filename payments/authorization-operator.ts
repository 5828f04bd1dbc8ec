import type { Command } from 'commander';
import { z } from 'zod';
import { readCard } from '../cards/reads.ts';
import { AuthorizationStatus } from '../domain/authorization.ts';
import { isId } from '../domain/ids.ts';
import { read, Text } from '../operator/flag-values.ts';
import { listNewest, type Verbs, withLimit } from '../operator/verbs.ts';
import { readAuthorization, readAuthorizations } from './authorization-operator-reads.ts';

const StatusName = z.enum(
  AuthorizationStatus.options,
  `must be one of ${AuthorizationStatus.options.join(', ')}`,
);
const AuthorizationId = z
  .string()
  .refine((text) => isId('auth', text), 'must be the id of an authorization: auth_01k0…');
const COLUMNS = [
  'created',
  'id',
  'status',
  'amount',
  'held_amount',
  'settled_amount',
  'decline_reason',
  'expires_at',
  'network_authorization_id',
];

interface ListFlags {
  card: string;
  status?: AuthorizationStatus | null;
  before?: string | null;
  limit?: number;
}

export function authorizationNoun(authorization: Command, { session, verb, examples, err }: Verbs): void {
  authorization.addHelpText(
    'after',
    examples('authorization list --card card_01k0…', 'authorization show auth_01k0…'),
  );

  const list = authorization
    .command('list')
    .description("a card's authorizations, declined ones included, newest first")
    .requiredOption('--card <id>', 'of this card', read(Text(100)))
    .option('--status <status>', 'only those with this status', read(StatusName))
    .option('--before <id>', 'only those older than this one: the next page', read(AuthorizationId));
  withLimit(list)
    .addHelpText('after', examples('authorization list --card card_01k0… --status pending'))
    .action(
      verb(async ({ card, status = null, before = null, limit }: ListFlags) => {
        const orm = await session.orm();
        const { id: cardId } = await readCard(orm, card);
        return listNewest(err, {
          noun: 'authorization',
          columns: COLUMNS,
          limit,
          isPaged: true,
          readNewest: (atMost) => readAuthorizations(orm, { cardId, status, before, limit: atMost }),
        });
      }),
    );

  authorization
    .command('show')
    .description('an authorization, its requests, and its clearings and declines')
    .argument('<id>', 'of the authorization')
    .addHelpText('after', examples('authorization show auth_01k0…'))
    .action(verb(async (id: string) => ({ value: await readAuthorization(await session.orm(), id) })));
}
