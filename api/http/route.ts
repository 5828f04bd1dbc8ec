import { z } from 'zod';
import type { Scope } from '../../accounts/scope-rules.ts';
import type { ErrorCode } from '../../domain/error-catalogue.ts';
import type { Mode } from '../../domain/mode.ts';
import type { StoredResponse } from '../../requests/response.ts';
import type { OperationId } from '../openapi/tags.ts';
import type { Caller } from './authenticate.ts';
import type { StreamedReply } from './stream-reply.ts';

/** The methods that a route can have, as the router and the OpenAPI document spell them. */
export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';

/** One declaration validates a request, documents it, and lists the responses it can get. */
export interface Declaration<Query = unknown, Body = unknown, Responses extends Schemas = Schemas> {
  method: Method;
  /** Relative to /v1, with `:name` for parameters. */
  path: string;
  /**
   * What a key must be allowed to do; null if any key may use it. A process with a route that doesn't say
   * does not start.
   */
  scope: Scope | null;
  /** A second one that it needs as well. */
  alsoScope?: Scope;
  /** The name in a generated client: the resource and a verb, as in `cards.create`. */
  operationId: OperationId;
  summary: string;
  description: string;
  /** The only mode whose keys may use it. */
  mode?: Mode;
  /** `accepted`: used if it is sent. If omitted, a key that is sent is ignored. */
  idempotencyKey?: 'required' | 'accepted';
  /** In live mode, a workflow does the work. */
  liveIsWorkflow?: true;
  query: z.ZodType<Query>;
  body?: z.ZodType<Body>;
  /** An empty body counts as `{}`, whatever Content-Type says. */
  bodyIsOptional?: true;
  responses: Responses;
  /** Of a 200 that is streamed. Everything else is JSON. */
  contentType?: 'text/csv';
  /**
   * For the reference: a request body, a query if one is required, and a real response for each status in
   * `responses`.
   */
  examples: { body?: object; query?: Record<string, string>; [status: number]: object | string };
  /**
   * In addition to those of every route, and of its scope, mode, key and body ({@link declaredErrorCodes}).
   */
  errors?: readonly ErrorCode[];
}

/** The body of each successful status. */
type Schemas = Readonly<Record<number, z.ZodType>>;

/** What a handler gets, all of it validated. */
export interface RouteInput<Query = unknown, Body = unknown> {
  caller: Caller;
  requestId: string;
  /** Where the request comes from (api/http/client-address.ts). */
  clientAddress: string;
  method: Method;
  /** The path's parameters by name. */
  params: Record<string, string>;
  /** The path as it was requested, without the query. */
  path: string;
  query: Query;
  body: Body;
  /** Empty if none was sent, or the route takes none. */
  idempotencyKey: string;
  /** Gives this request's turn to another one, because from here on it only waits. */
  passTurn(): void;
  /** Adds to the request's log line. */
  log(fields: Record<string, string>): void;
}

/** A response as declared, one that was stored as JSON and is sent as it is, or a stream. */
export type Reply<Responses extends Schemas = Schemas> =
  | StoredReply
  | DeclaredReply<Responses>
  | StreamedReply;

export interface StoredReply extends StoredResponse, Headers {}

type DeclaredReply<Responses extends Schemas> = {
  [Status in keyof Responses & number]: Headers & { status: Status; body: z.infer<Responses[Status]> };
}[keyof Responses & number];

interface Headers {
  headers?: Record<string, string>;
}

type Handler<Declared extends Declaration> =
  Declared extends Declaration<infer Query, infer Body, infer Responses>
    ? (input: RouteInput<Query, Body>) => Promise<Reply<Responses>>
    : never;

export interface Route {
  declaration: Declaration;
  handle(input: RouteInput): Promise<Reply>;
}

/**
 * The routes of one resource: their declarations, and how to implement them once the dependencies are there.
 */
interface Resource<Dependencies> {
  declarations: Declaration[];
  routes(dependencies: Dependencies): Route[];
}

/** Types a declaration by its own schemas. Without a query, it has no parameters. */
export function declare<Body, const Responses extends Schemas, Query = object>(
  declaration: Omit<Declaration<Query, Body, Responses>, 'query'> & { query?: z.ZodType<Query> },
): Declaration<Query, Body, Responses> {
  return { query: NO_PARAMETERS as z.ZodType<Query>, ...declaration };
}

const NO_PARAMETERS: z.ZodType = z.strictObject({});

/** @param implement returns a handler for each declaration, under the same name */
export function resource<Declared extends Record<string, Declaration>, Dependencies>(
  declared: Declared,
  implement: (dependencies: Dependencies) => { [Name in keyof Declared]: Handler<Declared[Name]> },
): Resource<Dependencies> {
  return {
    declarations: Object.values(declared),
    routes(dependencies) {
      const handlers = implement(dependencies) as Record<string, Route['handle']>;
      return Object.entries(declared).map(([name, declaration]) => ({
        declaration,
        handle: handlers[name] as Route['handle'],
      }));
    },
  };
}

/** Every error a route can answer, in the order they appear in the reference. */
export function declaredErrorCodes(declared: Declaration): ErrorCode[] {
  const { scope, body, mode, idempotencyKey, errors = [] } = declared;
  const codes = [...EVERYWHERE];
  if (scope !== null) codes.push('insufficient_scope');
  if (body) codes.push('body_too_large', 'unsupported_media_type');
  if (idempotencyKey === 'required') codes.push('idempotency_key_missing');
  if (idempotencyKey) codes.push('idempotency_key_invalid');
  codes.push(...errors);
  if (mode === 'test') codes.push('live_key_not_allowed');
  if (mode === 'live') codes.push('test_key_not_allowed');
  if (idempotencyKey) codes.push('idempotency_in_flight', 'idempotency_conflict');
  return [...new Set(codes)];
}

const EVERYWHERE: readonly ErrorCode[] = [
  'validation_failed',
  'invalid_api_key',
  'account_suspended',
  'ip_not_allowed',
  'rate_limited',
  'headers_too_large',
  'internal_error',
  'unavailable',
];
