import type { Command } from 'commander';
import { createApiKey, revokeApiKey } from '../../commands/accounts/api-keys.ts';
import { type ApiKey, ApiKeyEntity } from '../../db/entities/accounts.ts';
import type { Orm } from '../../db/orm.ts';
import type { Mode } from '../../domain/mode.ts';
import { ModeName, read, Text } from '../flag-values.ts';
import { readPartner } from '../reads/partners.ts';
import type { Verbs } from '../verbs.ts';

export function keyNoun(key: Command, { session, verb, examples }: Verbs): void {
  key.addHelpText('after', examples('key create prt_01k0… --mode test', 'key list prt_01k0…'));

  key
    .command('create')
    .description('create a key, which is shown only once')
    .argument('<partner>', 'id of the partner')
    .requiredOption('--mode <mode>', 'test or live', read(ModeName))
    .option('--name <name>', 'a name to recognise it by', read(Text(255)))
    .addHelpText('after', examples('key create prt_01k0… --mode live --name "production server"'))
    .action(
      verb(async (partnerId: string, { mode, name }: { mode: Mode; name?: string }) => ({
        value: await createApiKey(await session.withKeys(), { partnerId, mode, name: name ?? null }),
        note: 'This key is shown only once: hand it over now.',
      })),
    );

  key
    .command('list')
    .description("an account's keys, newest first, without the secret part")
    .argument('<partner>', 'id of the partner')
    .addHelpText('after', examples('key list prt_01k0…'))
    .action(
      verb(async (partnerId: string) => ({
        value: await readApiKeys(await session.orm(), partnerId),
        columns: ['id', 'mode', 'name', 'hint', 'created', 'revoked_at'],
        note: 'Revoke one with "operator key revoke ID".',
      })),
    );

  key
    .command('revoke')
    .description('revoke a key permanently; it stops working within 5 seconds')
    .argument('<id>', 'of the key (not the key itself)')
    .addHelpText('after', examples('key revoke key_01k0…'))
    .action(
      verb(async (id: string) => {
        await revokeApiKey(await session.operator(), id);
        return { value: await readApiKey(await session.orm(), id) };
      }),
    );
}

/** An API key without its secret part, which is not stored. */
interface ApiKeyResource {
  id: string;
  object: 'api_key';
  partner_id: string;
  mode: Mode;
  name: string | null;
  /** The key's first and last characters, to recognise it by. */
  hint: string;
  created: string;
  revoked_at: string | null;
}

/** Newest first, with revoked keys. @throws Refusal if there is no such account. */
async function readApiKeys(orm: Orm, partnerId: string): Promise<ApiKeyResource[]> {
  await readPartner(orm, partnerId);
  const keys = await orm.em.fork().find(ApiKeyEntity, { partnerId }, { orderBy: { id: 'desc' } });
  return keys.map(presentKey);
}

async function readApiKey(orm: Orm, keyId: string): Promise<ApiKeyResource> {
  return presentKey(await orm.em.fork().findOneOrFail(ApiKeyEntity, keyId));
}

function presentKey(key: ApiKey): ApiKeyResource {
  return {
    id: key.id,
    object: 'api_key',
    partner_id: key.partnerId,
    mode: key.mode,
    name: key.name ?? null,
    hint: key.hint,
    created: key.createdAt.toISOString(),
    revoked_at: key.revokedAt?.toISOString() ?? null,
  };
}
