import { z } from 'zod';

/** What an API key may do (docs/partners/keys-and-modes.md): each endpoint needs one of these, or none. */
export const Scope = z
  .enum([
    'cards:read',
    'cards:write',
    'secure_details:read',
    'balance:read',
    'funding:write',
    'events:read',
    'webhooks:write',
    'test:write',
    'api_keys:write',
  ])
  .meta({ id: 'Scope', description: 'What an API key may do.' });
export type Scope = z.infer<typeof Scope>;

/** Managing keys is given to a key on purpose, never by default. */
export const withoutApiKeys = (scopes: readonly Scope[]): Scope[] =>
  scopes.filter((scope) => scope !== 'api_keys:write');

/** What a key gets that an operator makes without saying more. */
export const DEFAULT_SCOPES: readonly Scope[] = withoutApiKeys(Scope.options);
