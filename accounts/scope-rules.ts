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
    'workbench:write',
    'requests:read',
  ])
  .meta({ id: 'Scope', description: 'What an API key may do.' });
export type Scope = z.infer<typeof Scope>;

/** Managing keys is given to a key on purpose, never by default. */
export const withoutApiKeys = <Given extends Scope>(scopes: readonly Given[]): Given[] =>
  scopes.filter((scope) => scope !== 'api_keys:write');

/** What a workbench session can have: it makes no others. */
export const sessionScopes = (scopes: readonly Scope[]) =>
  scopes.filter((scope): scope is Exclude<Scope, 'workbench:write'> => scope !== 'workbench:write');

/** What a key gets that an operator makes without saying more. */
export const DEFAULT_SCOPES: readonly Scope[] = withoutApiKeys(Scope.options);
