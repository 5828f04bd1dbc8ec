import { z } from 'zod';
import { At, IpBlocks, ModeName, ScopeNames, Text } from '../operator/flag-values.ts';
import {
  argument,
  flag,
  list,
  type Noun,
  needed,
  optionalArgument,
  toggle,
  verb,
} from '../operator/verbs.ts';
import { createApiKey, revokeApiKey } from './api-keys.ts';
import {
  createOperatorLogin,
  LOGIN_NAME,
  readOperatorLogin,
  readOperatorLogins,
  revokeOperatorLogin,
} from './operator-logins.ts';
import { readApiKey, readApiKeys } from './reads.ts';

export const keyNoun: Noun = {
  create: verb({
    about: 'create a key, which is shown only once',
    takes: {
      partner: argument('id of the partner'),
      mode: needed('<mode>', 'test or live', ModeName),
      name: flag('<name>', 'a name to recognise it by', Text(255)),
      scopes: flag(
        '<scopes>',
        'what it may do, comma-separated (default: everything but api_keys:write)',
        ScopeNames,
      ),
      ipAllowlist: flag(
        '<blocks>',
        'the addresses and CIDR blocks that it can be used from, comma-separated (default: all)',
        IpBlocks,
      ),
      expiresAt: flag('<time>', 'from when it is refused (default: never)', At),
    },
    examples: [
      'prt_01k0… --mode test',
      'prt_01k0… --mode live --name "production server"',
      'prt_01k0… --mode live --scopes cards:read,balance:read --ip-allowlist 203.0.113.7,2001:db8::/32 --expires-at 2027-01-01',
    ],
    async run({ partner: partnerId, scopes, ...key }, { session }) {
      const made = { ...key, partnerId, ...(scopes !== null && { scopes }) };
      return {
        value: await createApiKey(await session.withKeys(), made),
        note: 'This key is shown only once: hand it over now.',
      };
    },
  }),

  list: list({
    about: 'keys of all accounts or of one, newest first, with their last use and without the secret part',
    takes: {
      partner: optionalArgument('id of the partner'),
      scopes: toggle('show what each may do, from where and until when'),
    },
    pages: ['key'],
    examples: ['prt_01k0…', '--limit 1000 --json'],
    columns: ({ scopes }) =>
      scopes
        ? 'created id partner_name mode name hint scopes ip_allowlist expires_at created_by revoked_at'
        : 'created id partner_name mode name hint last_used_at revoked_at',
    read: readApiKeys,
    note: 'See what one did with "operator request find --key ID", and revoke it with "operator key revoke ID".',
  }),

  revoke: verb({
    about: 'revoke a key permanently; it stops working within 5 seconds',
    takes: { id: argument('of the key (not the key itself)') },
    examples: ['key_01k0…'],
    async run({ id }, { session }) {
      await revokeApiKey(await session.operator(), id);
      return { value: await readApiKey(await session.orm(), id) };
    },
  }),
};

const NAME = argument(
  'of the login',
  z
    .string()
    .regex(
      LOGIN_NAME,
      'must have 1 to 63 lower-case letters, digits or _, begin with a letter, and not with pg_',
    ),
);

export const loginNoun: Noun = {
  create: verb({
    about: "create an operator's login, whose URL is shown only once; needs the owner's DATABASE_URL",
    takes: { name: NAME },
    examples: ['anna'],
    async run({ name }, { session }) {
      const owner = await session.owner();
      const url = new URL(session.config.ownerDatabaseUrl);
      url.username = name;
      url.password = await createOperatorLogin(owner, name);
      return {
        value: { ...(await readOperatorLogin(owner.orm.em.fork(), name)), database_url: url.href },
        note: 'This URL is shown only once: hand it over now, for DATABASE_URL of the command line.',
      };
    },
  }),

  list: verb({
    about: 'the logins of operators',
    examples: [''],
    run: async (_, { session }) => ({
      value: await readOperatorLogins((await session.orm()).em.fork()),
      columns: ['id', 'status', 'sessions'],
    }),
  }),

  revoke: verb({
    about: "refuse an operator's login for good, and end its sessions; needs the owner's DATABASE_URL",
    takes: { name: NAME },
    examples: ['anna'],
    async run({ name }, { session }) {
      const owner = await session.owner();
      await revokeOperatorLogin(owner, name);
      return { value: await readOperatorLogin(owner.orm.em.fork(), name) };
    },
  }),
};
