import { z } from 'zod';
import { ObjectType } from '../domain/fields.ts';
import { Mode } from '../domain/mode.ts';
import type { Row } from '../platform/db/entities.ts';
import { ErrorCode } from './error-resource.ts';

/** What stands for whatever a person may have typed. */
export const LEFT_OUT = '…';

const LoggedError = z
  .object({
    code: ErrorCode,
    param: z.string().nullable().describe('The field that was wrong, if this endpoint has it.'),
  })
  .meta({ id: 'LoggedError', description: 'Why a request was refused.' });

/** A request in the log (docs/partners/requests.md). */
export const LoggedRequestResource = z
  .object({
    id: z.string().describe('The `Request-Id` of its response. Prefix `req_`.'),
    object: ObjectType('request'),
    method: z.string().describe('`other` if the API knows no such method.'),
    path: z
      .string()
      .describe(
        "The endpoint's path with our ids; whatever else was in its place is `…`, as is an unknown path.",
      ),
    status: z.int().describe('Of the response; 499 if the client left before.'),
    error: LoggedError.nullable().describe('Null if it was not refused.'),
    api_key_id: z.string().describe('The API key that it was sent with.'),
    address: z.string().nullable().describe('Where it came from. Null if that could not be told.'),
    idempotency_key: z
      .string()
      .nullable()
      .describe('Its Idempotency-Key, if the endpoint takes one. 12 to 19 digits in a row are `…`.'),
    operation_id: z.string().nullable().describe('Its operation, if it has one.'),
    duration_ms: z.int().min(0).describe('How long its response took, in milliseconds.'),
    mode: Mode,
    created: z.iso.datetime().describe('When it arrived, in real time.'),
  })
  .meta({ id: 'Request', description: 'A request of yours, and how it ended.' });
export type LoggedRequestResource = z.infer<typeof LoggedRequestResource>;

export type LoggedRequestRow = Row<'logged_request'>;

/** @param at the time in its id */
export function presentLoggedRequest(row: LoggedRequestRow, at: Date): LoggedRequestResource {
  return {
    id: row.id,
    object: 'request',
    method: row.method,
    path: row.path,
    status: row.status,
    error:
      row.error_code === null
        ? null
        : { code: row.error_code as z.infer<typeof ErrorCode>, param: row.error_param },
    api_key_id: row.api_key_id,
    address: row.address,
    idempotency_key: row.idempotency_key,
    operation_id: row.operation_id,
    duration_ms: row.duration_ms,
    mode: row.mode,
    created: at.toISOString(),
  };
}
