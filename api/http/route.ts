import type { z } from 'zod';
import type { ErrorCode } from '../../domain/error-catalogue.ts';
import type { Mode } from '../../domain/mode.ts';
import type { OperationId } from '../openapi/resources.ts';
import type { Caller } from './caller.ts';

/** What a handler gets: everything checked. */
export interface RouteInput<Query, Body> {
  caller: Caller;
  requestId: string;
  /** The path's parameters by name. */
  params: Record<string, string>;
  /** The path as it was asked for, without the query. */
  path: string;
  query: Query;
  body: Body;
  /** Empty where none was sent, or the route takes none. */
  idempotencyKey: string;
  /** Lets another request work though this one has no answer yet: what is left of it waits. */
  passTurn(): void;
  /** Adds to the request's log line. */
  log(fields: Record<string, string>): void;
}

export interface Reply {
  status: number;
  /** An object, or JSON that is sent as it is; null with 204. */
  body: object | string | null;
  headers?: Record<string, string>;
}

/** One declaration validates a request and documents it: the guard and the OpenAPI document both read it. */
export interface Route<Query = unknown, Body = unknown> {
  method: 'get' | 'post' | 'put' | 'delete';
  /** Below /v1, with `:name` for parameters. */
  path: string;
  /** What a generated client calls it: the resource and a verb, as in `cards.create`. */
  operationId: OperationId;
  summary: string;
  description: string;
  /** The only mode whose keys may use it. */
  mode?: Mode;
  /** `accepted`: used where it is sent. Left out: a key that is sent has no meaning. */
  idempotencyKey?: 'required' | 'accepted';
  /** In live mode its work is a workflow's. */
  liveIsWorkflow?: true;
  query: z.ZodType<Query>;
  body?: z.ZodType<Body>;
  /** The body may be left out, and is then `{}` whatever Content-Type says. */
  bodyIsOptional?: true;
  responses: Record<number, z.ZodType>;
  /** For the reference: a body that is sent, and an answer for each status of `responses`, as the service would give it. */
  examples: { body?: object; [status: number]: object };
  /** Beside those every route has: 400, 401, 429, 500, 503. */
  errors?: ErrorCode[];
  handle(input: RouteInput<Query, Body>): Promise<Reply>;
}

/** Types a declaration by its own schemas. */
export function route<Query, Body>(declaration: Route<Query, Body>): Route<Query, Body> {
  return declaration;
}
