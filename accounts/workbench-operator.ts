import { ModeName, ScopeNames } from '../operator/flag-values.ts';
import { argument, flag, type Noun, needed, verb } from '../operator/verbs.ts';
import { ConfigurationError } from '../platform/config/read-environment.ts';
import { sessionScopes } from './scope-rules.ts';
import { presentWorkbenchSession } from './workbench-session-resource.ts';
import { createWorkbenchLink, workbenchUrl } from './workbench-sessions.ts';

const SessionScopeNames = ScopeNames.refine(
  (names) => !names.includes('workbench:write'),
  'must not be workbench:write: a session makes no others',
).transform(sessionScopes);

export const workbenchNoun: Noun = {
  link: verb({
    about: "make a link that opens a partner's workbench, once and within 5 minutes",
    takes: {
      partner: argument('id of the partner'),
      mode: needed('<mode>', 'test or live', ModeName),
      scopes: flag(
        '<scopes>',
        'what it may do, comma-separated (default: everything but api_keys:write)',
        SessionScopeNames,
      ),
    },
    examples: ['prt_01k0… --mode test', 'prt_01k0… --mode live --scopes cards:read,balance:read'],
    async run({ partner: partnerId, mode, scopes }, { session }) {
      const { publicUrl } = session.config;
      if (publicUrl === null)
        throw new ConfigurationError(['PUBLIC_URL: is required for this command; use the same as the API']);
      const wanted = { scopes: scopes ?? undefined, expires_in_seconds: 3_600 };
      const { row, token } = await createWorkbenchLink(await session.withKeys(), { partnerId, mode }, wanted);
      return {
        value: presentWorkbenchSession(row, workbenchUrl(publicUrl, token)),
        note: 'This link is shown only once, and whoever opens it has the session: hand it over now.',
      };
    },
  }),
};
