import { z } from 'zod';
import { ObjectType } from '../domain/fields.ts';
import { isoTime } from '../domain/iso-time.ts';
import { Mode } from '../domain/mode.ts';
import type { Row } from '../platform/db/entities.ts';
import { Scope } from './scope-rules.ts';

/** What a session can be made with: it makes no others. */
const SessionScope = Scope.exclude(['workbench:write']).meta({
  id: 'WorkbenchScope',
  description: 'What a workbench session may do.',
});

const SessionStatus = z.enum(['unopened', 'open', 'ended']).meta({
  id: 'WorkbenchSessionStatus',
  description:
    '`unopened`: its link was not opened yet, and still can be. `open`: a browser has it. `ended`: it has expired, it or its ' +
    'API key was ended, or its link was not opened in time.',
});

/** A workbench session as partners see it (docs/partners/workbench.md). */
export const WorkbenchSessionResource = z
  .object({
    id: z.string().describe('Prefix `wbs_`.'),
    object: ObjectType('workbench_session'),
    url: z
      .string()
      .optional()
      .describe(
        'The link that opens the workbench, once. Present only in the response that made it. Treat it as a key.',
      ),
    url_expires_at: z.iso.datetime().describe('Until when the link can be opened.'),
    scopes: z.array(Scope).describe('What the session may do.'),
    api_key_id: z.string().describe('The API key that made it, with which it ends.'),
    status: SessionStatus,
    mode: Mode,
    expires_at: z.iso.datetime().describe('When the session ends, in real time.'),
    created: z.iso.datetime().describe('When it was made, in real time.'),
  })
  .meta({ id: 'WorkbenchSession', description: 'An API key that lives in the cookie of a browser.' });
export type WorkbenchSessionResource = z.infer<typeof WorkbenchSessionResource>;

const MIN_SECONDS = 300;
const MAX_SECONDS = 43_200;
const DURATION = `must be an integer between ${MIN_SECONDS} and ${MAX_SECONDS}`;

/** Body of POST /workbench-sessions. */
export const WorkbenchSessionRequest = z
  .strictObject({
    scopes: z
      .array(SessionScope)
      .min(1, 'must not be empty')
      .max(SessionScope.options.length, 'must name each scope once')
      .optional()
      .describe(
        'What the session may do: only what the key may do. Default: that without `api_keys:write` and `workbench:write`.',
      ),
    expires_in_seconds: z
      .int(DURATION)
      .min(MIN_SECONDS, DURATION)
      .max(MAX_SECONDS, DURATION)
      .default(3_600)
      .describe('How long the session lasts, from now on.'),
  })
  .meta({ id: 'CreateWorkbenchSessionRequest', description: 'The session to make.' });
export type WorkbenchSessionRequest = z.infer<typeof WorkbenchSessionRequest>;

/** A session's row with what depends on the time. */
export interface WorkbenchSessionRow
  extends Row<'workbench_session', 'id' | 'partner_id' | 'mode' | 'api_key_id'> {
  scopes: string[];
  link_expires_at: string;
  expires_at: string;
  created_at: string;
  status: z.infer<typeof SessionStatus>;
}

/** @param url only if it was just made, as it is never shown again */
export function presentWorkbenchSession(
  row: WorkbenchSessionRow,
  url: string | null = null,
): WorkbenchSessionResource {
  return {
    id: row.id,
    object: 'workbench_session',
    ...(url !== null && { url }),
    url_expires_at: isoTime(row.link_expires_at),
    scopes: row.scopes as Scope[],
    api_key_id: row.api_key_id,
    status: row.status,
    mode: row.mode,
    expires_at: isoTime(row.expires_at),
    created: isoTime(row.created_at),
  };
}
