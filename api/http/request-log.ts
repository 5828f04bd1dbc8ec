import type Router from '@koa/router';
import type { Context } from 'koa';
import { Counter, type Metric } from 'prom-client';
import { z } from 'zod';
import { isAnyId } from '../../domain/ids.ts';
import { LEFT_OUT, type LoggedRequestRow } from '../../requests/logged-request-resource.ts';
import { methodLabel, type RequestState } from './log-request.ts';
import type { Declaration } from './route.ts';
import type { StorageBudget } from './storage-budget.ts';

/** How many requests wait to be written; beyond that they are dropped. */
const MAX_WAITING = 10_000;
/** How many of an account and mode a process keeps in a second. */
const MAX_A_SECOND = 20;
/** What a row and its entries in the indexes take. */
const STORED_BYTES = 500;
/** How many are written in one statement. */
const WRITTEN_AT_ONCE = 1_000;

export interface RequestLog {
  /** Never waits: what there is no room for is dropped, and counted. */
  add(row: LoggedRequestRow): void;
  /** Writes what has been added. What can't be written is dropped. */
  write(insert: (rows: LoggedRequestRow[]) => Promise<void>): Promise<void>;
  metrics: Metric[];
}

/**
 * The log of partners' requests (docs/partners/requests.md), written beside them.
 * @param now milliseconds of a monotonic clock
 */
export function createRequestLog(
  storage: StorageBudget,
  now: () => number = () => performance.now(),
): RequestLog {
  let waiting: LoggedRequestRow[] = [];
  let second = 0;
  /** By account: how many of this second. */
  const counted = new Map<string, number>();
  const dropped = new Counter({
    name: 'request_log_dropped_total',
    help: "Requests that are missing in partners' log, by reason",
    labelNames: ['reason'],
    registers: [],
  });
  // So that the first one shows as an increase.
  for (const reason of ['account_rate', 'budget', 'backlog', 'not_written']) dropped.inc({ reason }, 0);

  function reasonToDrop(row: LoggedRequestRow): string | null {
    const nowSecond = Math.floor(now() / 1_000);
    if (nowSecond !== second) counted.clear();
    second = nowSecond;
    const account = `${row.partner_id}/${row.mode}`;
    const count = (counted.get(account) ?? 0) + 1;
    if (count > MAX_A_SECOND) return 'account_rate';
    if (waiting.length >= MAX_WAITING) return 'backlog';
    counted.set(account, count);
    const tenant = { partnerId: row.partner_id, mode: row.mode };
    if (storage.isUsedUp(tenant)) return 'budget';
    storage.add(tenant, STORED_BYTES);
    return null;
  }

  return {
    add(row) {
      const reason = reasonToDrop(row);
      if (reason === null) waiting.push(row);
      else dropped.inc({ reason });
    },
    async write(insert) {
      const rows = waiting;
      waiting = [];
      for (let done = 0; done < rows.length; done += WRITTEN_AT_ONCE) {
        try {
          await insert(rows.slice(done, done + WRITTEN_AT_ONCE));
        } catch (error) {
          dropped.inc({ reason: 'not_written' }, rows.length - done);
          throw error;
        }
      }
    },
    metrics: [dropped],
  };
}

export type KeepRequest = (ctx: Context & { state: RequestState }, durationMs: number) => void;

/**
 * Adds each request with a valid key that is no successful GET to the log, and nothing of it that a person
 * typed: no body, no query, no message.
 */
export function keepRequests(
  log: RequestLog,
  v1: Router<RequestState>,
  declarations: readonly Declaration[],
): KeepRequest {
  const byRoute = new Map(declarations.map((one) => [`${one.method} ${one.path}`, one]));
  const fields = new Map<Declaration, object[]>();

  return (ctx, durationMs) => {
    const { caller, requestId, clientAddress, error } = ctx.state;
    const { method, status } = ctx;
    if (caller === undefined || (method === 'GET' && status < 400)) return;
    const { pattern, params } = findRoute(v1, ctx);
    const declaration = byRoute.get(`${method.toLowerCase()} ${pattern.slice('/v1'.length)}`);
    const key = ctx.get('idempotency-key');
    log.add({
      id: requestId,
      partner_id: caller.partnerId,
      mode: caller.mode,
      method: methodLabel(method),
      path: pattern.replaceAll(/:(\w+)/g, (_, name) =>
        isAnyId(params[name] ?? '') ? `${params[name]}` : LEFT_OUT,
      ),
      status,
      error_code: error?.code ?? null,
      error_param: declaredParam(declaration, error?.detail.issues?.[0]?.path),
      api_key_id: caller.keyId,
      address: clientAddress,
      idempotency_key:
        declaration?.idempotencyKey === undefined || !/^[ -~]{1,255}$/.test(key) ? null : masked(key),
      operation_id: ctx.response.get('operation-id') || null,
      duration_ms: Math.round(durationMs),
    });
  };

  function declaredParam(declaration: Declaration | undefined, param: string | undefined): string | null {
    if (declaration === undefined || param === undefined) return null;
    if (['Idempotency-Key', 'Content-Type', 'body', 'query'].includes(param)) return param;
    const schemas = fields.get(declaration) ?? [declaration.query, declaration.body].flatMap(toSchema);
    fields.set(declaration, schemas);
    return schemas.some((schema) => hasField(schema, schema, param.split('.'))) ? param : null;
  }
}

/** A card's number may have been sent as a key. */
const masked = (key: string): string => key.replaceAll(/(?<!\d)\d{12,19}(?!\d)/g, LEFT_OUT);

/** The route of a request, also of one that was refused before the router saw it. */
function findRoute(v1: Router<RequestState>, { path, method }: Context) {
  const layer = v1.match(path, method).pathAndMethod.at(-1);
  if (layer === undefined || typeof layer.path !== 'string') return { pattern: LEFT_OUT, params: {} };
  const params: Record<string, string> = layer.params(path, layer.captures(path));
  return { pattern: layer.path, params };
}

const toSchema = (schema: z.ZodType | undefined): object[] =>
  schema === undefined ? [] : [z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' })];

interface JsonSchema {
  $ref?: string;
  properties?: Record<string, JsonSchema>;
  items?: JsonSchema;
  anyOf?: JsonSchema[];
  oneOf?: JsonSchema[];
  allOf?: JsonSchema[];
}

/** Whether a schema declares the field: of an object with any keys, such as metadata, it declares none. */
function hasField(root: JsonSchema, schema: JsonSchema | undefined, [first, ...rest]: string[]): boolean {
  if (first === undefined) return true;
  if (schema === undefined) return false;
  if (schema.$ref !== undefined) {
    const target = schema.$ref
      .slice(2)
      .split('/')
      .reduce((at: object, name) => (at as never)[name], root as object);
    return hasField(root, target, [first, ...rest]);
  }
  const below =
    /^\d{1,3}$/.test(first) && schema.items !== undefined ? schema.items : own(schema.properties, first);
  if (below !== undefined && hasField(root, below, rest)) return true;
  return [schema.anyOf, schema.oneOf, schema.allOf]
    .flatMap((some) => some ?? [])
    .some((one) => hasField(root, one, [first, ...rest]));
}

const own = (properties: Record<string, JsonSchema> | undefined, name: string): JsonSchema | undefined =>
  properties !== undefined && Object.hasOwn(properties, name) ? properties[name] : undefined;
