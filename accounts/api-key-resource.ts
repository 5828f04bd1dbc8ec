import { z } from 'zod';
import { LAST_MS } from '../domain/account-clock.ts';
import { Label, ObjectType, Timestamp } from '../domain/fields.ts';
import { IpAllowlist } from '../domain/ip-address.ts';
import { isoTime } from '../domain/iso-time.ts';
import { Mode } from '../domain/mode.ts';
import type { Row } from '../platform/db/entities.ts';
import { Scope } from './scope-rules.ts';

const ApiKeyStatus = z.enum(['active', 'expired', 'revoked']).meta({
  id: 'ApiKeyStatus',
  description: 'Only an `active` key can be used.',
});

/** An API key as partners see it (docs/partners/keys-and-modes.md). */
export const ApiKeyResource = z
  .object({
    id: z.string().describe('Prefix `key_`.'),
    object: ObjectType('api_key'),
    name: z.string().nullable().describe('What you recognise it by. Null if we made it without a name.'),
    prefix: z.string().describe('The first 12 characters of the key.'),
    scopes: z.array(Scope).describe('What the key may do.'),
    ip_allowlist: z
      .array(z.string())
      .nullable()
      .describe('The addresses and CIDR blocks that the key can be used from. Null: every address.'),
    expires_at: z.iso
      .datetime()
      .nullable()
      .describe('From when the key is refused. Null: it does not expire.'),
    last_used_at: z.iso
      .datetime()
      .nullable()
      .describe('When the key was last used, right within a minute. Null if it never was.'),
    created_by: z.string().describe('`operator` if we made it, else the id of the key that did.'),
    status: ApiKeyStatus,
    mode: Mode,
    created: z.iso.datetime().describe('When the key was made.'),
    key: z
      .string()
      .optional()
      .describe('The key itself. Present only in the response that made it: store it.'),
  })
  .meta({ id: 'ApiKey', description: 'A key to this API.' });
export type ApiKeyResource = z.infer<typeof ApiKeyResource>;

/** An API key in an event: where a key can be used from is nothing for the servers of webhooks. */
export const ApiKeyInEvent = ApiKeyResource.omit({ ip_allowlist: true, key: true }).meta({
  id: 'ApiKeyInEvent',
  description: 'A key to this API, as events show it.',
});
export type ApiKeyInEvent = z.infer<typeof ApiKeyInEvent>;

const ExpiresAt = Timestamp.refine(
  (at) => at.getTime() <= LAST_MS,
  'must be at most 9999-12-31T23:59:59.999Z',
)
  .nullable()
  .optional();

/** Body of POST /api-keys. */
export const ApiKeyRequest = z
  .strictObject({
    name: Label(255).describe('What you recognise the key by.'),
    scopes: z
      .array(Scope)
      .min(1, 'must not be empty')
      .max(Scope.options.length, 'must name each scope once')
      .optional()
      .describe(
        'What the key may do: only what the key that makes it may do. Default: that without `api_keys:write`.',
      ),
    ip_allowlist: IpAllowlist.nullable()
      .optional()
      .describe(
        'Up to 50 IP addresses and CIDR blocks that the key can be used from, all among those of the key that makes it. Null: every address. Default: those of the key that makes it.',
      ),
    expires_at: ExpiresAt.describe(
      'From when the key is refused, in the future and not after the expiry of the key that makes it. Null: it does not expire. Default: ' +
        'the expiry of the key that makes it.',
    ),
  })
  .meta({ id: 'CreateApiKeyRequest', description: 'The key to make.' });
export type ApiKeyRequest = z.infer<typeof ApiKeyRequest>;

const MAX_OVERLAP_SECONDS = 604_800;
const OVERLAP = `must be an integer between 0 and ${MAX_OVERLAP_SECONDS}`;

/** Body of POST /api-keys/{keyId}/rotate. */
export const RotateApiKeyRequest = z
  .strictObject({
    overlap_seconds: z
      .int(OVERLAP)
      .min(0, OVERLAP)
      .max(MAX_OVERLAP_SECONDS, OVERLAP)
      .default(86_400)
      .describe('How long the old key still works. Never longer than it would have.'),
    expires_at: ExpiresAt.describe(
      'From when the new key is refused, in the future and not after the expiry of the key that you send. Null: it does not expire. ' +
        'Default: the expiry of the old key.',
    ),
  })
  .meta({ id: 'RotateApiKeyRequest', description: 'How long both keys work, and when the new one expires.' });
export type RotateApiKeyRequest = z.infer<typeof RotateApiKeyRequest>;

/** A key's row with what depends on the time, as `SHOWN_KEY` of platform/db/columns.ts selects it. */
export interface ApiKeyRow
  extends Row<
    'api_key',
    'id' | 'partner_id' | 'mode' | 'name' | 'hint' | 'prefix' | 'scopes' | 'ip_allowlist' | 'created_by'
  > {
  created_at: string;
  expires_at: string | null;
  last_used_at: string | null;
  status: z.infer<typeof ApiKeyStatus>;
}

export function presentKeyInEvent(row: ApiKeyRow): ApiKeyInEvent {
  const { ip_allowlist: _, key: __, ...shown } = presentApiKey(row);
  return shown;
}

/** @param key only if it was just made, as it is never shown again */
export function presentApiKey(row: ApiKeyRow, key: string | null = null): ApiKeyResource {
  return {
    id: row.id,
    object: 'api_key',
    name: row.name,
    prefix: row.prefix,
    scopes: row.scopes as Scope[],
    ip_allowlist: row.ip_allowlist,
    expires_at: isoTime(row.expires_at),
    last_used_at: isoTime(row.last_used_at),
    created_by: row.created_by,
    status: row.status,
    mode: row.mode,
    created: isoTime(row.created_at),
    ...(key !== null && { key }),
  };
}
