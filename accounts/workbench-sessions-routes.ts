import { sql } from 'kysely';
import { z } from 'zod';
import { askingKey } from '../api/http/asking-key.ts';
import { declareList, idRange, type PageValues, pageOf, pageRows, pageValues } from '../api/http/list.ts';
import { type PageRequest, presentList } from '../api/http/list-envelope.ts';
import type { OwnSite } from '../api/http/own-site.ts';
import { declare, resource } from '../api/http/route.ts';
import type { Tenant } from '../domain/mode.ts';
import { type Reader, tenantStatement } from '../platform/db/sql.ts';
import type { CommandContext } from '../requests/command-context.ts';
import { NEW_WORKBENCH_SESSION, WORKBENCH_SESSION, WORKBENCH_SESSION_REQUEST } from './examples.ts';
import {
  presentWorkbenchSession,
  WorkbenchSessionRequest,
  WorkbenchSessionResource,
  type WorkbenchSessionRow,
} from './workbench-session-resource.ts';
import {
  createWorkbenchSession,
  endWorkbenchSession,
  SESSION_WITH_KEY,
  SHOWN_SESSION,
  workbenchUrl,
} from './workbench-sessions.ts';

const createSession = declare({
  method: 'post',
  path: '/workbench-sessions',
  scope: 'workbench:write',
  operationId: 'workbenchSessions.create',
  summary: 'Create a workbench session',
  description:
    'Makes a link that opens the workbench in a browser, once and within 5 minutes, for your account and the mode of the key ' +
    'that you send. The session can do no more than the key, and ends with it. Only this response has the `url`: whoever opens it ' +
    'has the session. An Idempotency-Key is ignored. You can have 100 sessions in each mode.',
  body: WorkbenchSessionRequest,
  bodyIsOptional: true,
  responses: { 201: WorkbenchSessionResource },
  examples: { body: WORKBENCH_SESSION_REQUEST, 201: NEW_WORKBENCH_SESSION },
  errors: ['limit_exceeded'],
});

const listSessions = declareList({
  path: '/workbench-sessions',
  scope: 'workbench:write',
  operationId: 'workbenchSessions.list',
  summary: 'List workbench sessions',
  description:
    "Your account's workbench sessions in this mode, newest first. Those that have ended are kept for 7 days.",
  idPrefix: 'wbs',
  item: WorkbenchSessionResource,
  example: WORKBENCH_SESSION,
});

const deleteSession = declare({
  method: 'delete',
  path: '/workbench-sessions/:sessionId',
  scope: 'workbench:write',
  operationId: 'workbenchSessions.delete',
  summary: 'End a workbench session',
  description: 'The session stops working everywhere within 5 seconds, and its link with it.',
  responses: { 204: z.null() },
  examples: {},
  errors: ['workbench_session_not_found'],
});

export interface WorkbenchSessionDependencies extends CommandContext {
  site: OwnSite;
}

export const workbenchSessions = resource(
  { createSession, listSessions, deleteSession },
  (dependencies: WorkbenchSessionDependencies) => ({
    async createSession(input) {
      const { row, token } = await createWorkbenchSession(dependencies, askingKey(input), input.body);
      const url = workbenchUrl(dependencies.site.origin, token);
      return { status: 201, body: presentWorkbenchSession(row, url) };
    },

    async listSessions({ caller, query }) {
      // From the primary: a session that was just made or ended is shown so.
      const page = await readSessionPage(dependencies.orm.em.fork(), caller, query);
      return { status: 200, body: presentList(page, query.limit) };
    },

    async deleteSession(input) {
      await endWorkbenchSession(dependencies, askingKey(input), input.params.sessionId ?? '');
      return { status: 204, body: null };
    },
  }),
);

/**
 * Up to `limit` + 1 sessions, newest first.
 * @throws ApiError `validation_failed` if `starting_after` is not a session of the tenant
 */
async function readSessionPage(
  em: Reader,
  tenant: Tenant,
  page: PageRequest,
): Promise<WorkbenchSessionResource[]> {
  const rows = await selectPage(em, tenant, pageValues(page));
  return pageRows<WorkbenchSessionRow>(rows, 'a workbench session').map((row) =>
    presentWorkbenchSession(row),
  );
}

const selectPage = tenantStatement((db, values: Tenant & PageValues) => {
  const { partnerId, mode, limit } = values;
  const { from, before } = idRange('wbs', values, 'real');
  const newest = sql<WorkbenchSessionRow>`(SELECT ${SHOWN_SESSION} FROM ${SESSION_WITH_KEY}
    WHERE s.partner_id = ${partnerId} AND s.mode = ${mode} AND s.id >= ${from} AND s.id < ${before}
    ORDER BY s.id DESC LIMIT ${limit})`;
  return pageOf(db, values, 'workbench_session', newest);
});
