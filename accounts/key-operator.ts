import type { Command } from 'commander';
import { z } from 'zod';
import { isId } from '../domain/ids.ts';
import type { Mode } from '../domain/mode.ts';
import { At, IpBlocks, ModeName, read, ScopeNames, Text } from '../operator/flag-values.ts';
import { listNewest, type Verbs, withLimit } from '../operator/verbs.ts';
import type { Orm } from '../platform/db/orm.ts';
import { createApiKey, revokeApiKey } from './api-keys.ts';
import { readPartner, readPartnerNames } from './operator-reads.ts';
import type { Scope } from './scope-rules.ts';
import { type ApiKey, ApiKeyEntity } from './tables.ts';

export function keyNoun(key: Command, { session, verb, examples, err }: Verbs): void {
  key.addHelpText('after', examples('key create prt_01k0… --mode test', 'key list prt_01k0…'));

  key
    .command('create')
    .description('create a key, which is shown only once')
    .argument('<partner>', 'id of the partner')
    .requiredOption('--mode <mode>', 'test or live', read(ModeName))
    .option('--name <name>', 'a name to recognise it by', read(Text(255)))
    .option(
      '--scopes <scopes>',
      'what it may do, comma-separated (default: everything but api_keys:write)',
      read(ScopeNames),
    )
    .option(
      '--ip-allowlist <blocks>',
      'the addresses and CIDR blocks that it can be used from, comma-separated (default: all)',
      read(IpBlocks),
    )
    .option('--expires-at <time>', 'from when it is refused (default: never)', read(At))
    .addHelpText(
      'after',
      examples(
        'key create prt_01k0… --mode live --name "production server"',
        'key create prt_01k0… --mode live --scopes cards:read,balance:read --ip-allowlist 203.0.113.7,2001:db8::/32 --expires-at 2027-01-01',
      ),
    )
    .action(
      verb(async (partnerId: string, { name = null, ...flags }: CreateFlags) => ({
        value: await createApiKey(await session.withKeys(), { partnerId, name, ...flags }),
        note: 'This key is shown only once: hand it over now.',
      })),
    );

  const list = key
    .command('list')
    .description(
      'keys of all accounts or of one, newest first, with their last use and without the secret part',
    )
    .argument('[partner]', 'id of the partner')
    .option('--scopes', 'show what each may do, from where and until when')
    .option('--before <id>', 'only those older than this key: the next page', read(KeyId));
  withLimit(list)
    .addHelpText('after', examples('key list prt_01k0…', 'key list --limit 1000 --json'))
    .action(
      verb(async (partnerId: string | undefined, { before = null, limit, scopes = false }: ListFlags) => {
        const orm = await session.orm();
        if (partnerId !== undefined) await readPartner(orm, partnerId);
        const listed = await listNewest(err, {
          noun: 'key',
          columns: scopes ? COLUMNS_WITH_SCOPES : COLUMNS,
          limit,
          isPaged: true,
          readNewest: (atMost) => readApiKeys(orm, { partnerId: partnerId ?? null, before, limit: atMost }),
        });
        const isEmpty = (listed.value as object[]).length === 0;
        return isEmpty ? listed : { ...listed, note: SEE_MORE };
      }),
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

const KeyId = z.string().refine((text) => isId('key', text), 'must be the id of a key: key_01k0…');
const COLUMNS = 'created id partner_name mode name hint last_used_at revoked_at'.split(' ');
const COLUMNS_WITH_SCOPES =
  'created id partner_name mode name hint scopes ip_allowlist expires_at created_by revoked_at'.split(' ');
const SEE_MORE =
  'See what one did with "operator request find --key ID", and revoke it with "operator key revoke ID".';

interface CreateFlags {
  mode: Mode;
  name?: string | null;
  scopes?: Scope[];
  ipAllowlist?: string[];
  expiresAt?: Date;
}

interface ListFlags {
  scopes?: boolean;
  before?: string | null;
  limit?: number;
}

/** An API key without its secret part, which is not stored. */
interface ApiKeyResource {
  id: string;
  object: 'api_key';
  partner_id: string;
  partner_name: string;
  mode: Mode;
  name: string | null;
  /** The key's first and last characters, to recognise it by. */
  hint: string;
  created: string;
  /** Right within a minute; null if it was never used, or not since this is recorded. */
  last_used_at: string | null;
  revoked_at: string | null;
  scopes: Scope[];
  /** Null: every address. */
  ip_allowlist: string[] | null;
  /** In the account's time; null: it does not expire. */
  expires_at: string | null;
  /** `operator`, or the id of the partner's key that made it. */
  created_by: string;
}

/** Newest first, with revoked keys. @param asked.partnerId null for all accounts */
async function readApiKeys(
  orm: Orm,
  { partnerId, before, limit }: { partnerId: string | null; before: string | null; limit: number },
): Promise<ApiKeyResource[]> {
  const where: { partnerId?: string; id?: { $lt: string } } = {};
  if (partnerId !== null) where.partnerId = partnerId;
  if (before !== null) where.id = { $lt: before };
  const keys = await orm.em.fork().find(ApiKeyEntity, where, { orderBy: { id: 'desc' }, limit });
  const partnerIds = keys.map((key) => key.partnerId);
  const names = await readPartnerNames(orm, partnerIds);
  return keys.map((key) => presentKey(key, names.get(key.partnerId) ?? ''));
}

async function readApiKey(orm: Orm, keyId: string): Promise<ApiKeyResource> {
  const key = await orm.em.fork().findOneOrFail(ApiKeyEntity, keyId);
  const names = await readPartnerNames(orm, [key.partnerId]);
  return presentKey(key, names.get(key.partnerId) ?? '');
}

function presentKey(key: ApiKey, partnerName: string): ApiKeyResource {
  return {
    id: key.id,
    object: 'api_key',
    partner_id: key.partnerId,
    partner_name: partnerName,
    mode: key.mode,
    name: key.name ?? null,
    hint: key.hint,
    created: key.createdAt.toISOString(),
    last_used_at: key.lastUsedAt?.toISOString() ?? null,
    revoked_at: key.revokedAt?.toISOString() ?? null,
    scopes: key.scopes,
    ip_allowlist: key.ipAllowlist ?? null,
    expires_at: key.expiresAt?.toISOString() ?? null,
    created_by: key.createdBy,
  };
}
