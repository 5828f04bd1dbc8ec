import { type ApiKey, ApiKeyEntity } from '../../db/entities/accounts.ts';
import type { Orm } from '../../db/orm.ts';
import type { Mode } from '../../domain/mode.ts';
import { readPartner } from './read-partners.ts';

/** An API key without the key, which is kept nowhere. */
export interface ApiKeyResource {
  id: string;
  object: 'api_key';
  partner_id: string;
  mode: Mode;
  name: string | null;
  /** Its beginning and its end, to recognise it by. */
  hint: string;
  created: string;
  revoked_at: string | null;
}

/** Newest first, revoked ones included. @throws Refusal where there is no such account. */
export async function readApiKeys(orm: Orm, partnerId: string): Promise<ApiKeyResource[]> {
  await readPartner(orm, partnerId);
  const keys = await orm.em.fork().find(ApiKeyEntity, { partnerId }, { orderBy: { id: 'desc' } });
  return keys.map(presentKey);
}

export async function readApiKey(orm: Orm, keyId: string): Promise<ApiKeyResource> {
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
