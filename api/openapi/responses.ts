import { insufficientCardBalance } from '../../cards/transfers/rules.ts';
import { ApiError } from '../../domain/api-error.ts';
import { ERROR_CODES, ERRORS, type ErrorCode } from '../../domain/error-catalogue.ts';
import { insufficientFunds } from '../../domain/fees.ts';
import { idPattern } from '../../domain/ids.ts';
import { presentError } from '../../requests/error-resource.ts';
import { type Declaration, declaredErrorCodes } from '../http/route.ts';
import { keyError } from '../http/validate.ts';
import { OPERATION_ID, REQUEST_ID } from './examples.ts';
import type { Schemas } from './schemas.ts';

/** Every response an operation can give. */
export function describeResponses(route: Declaration, schemas: Schemas): Record<string, object> {
  return { ...successes(route, schemas), ...failures(route) };
}

function successes(route: Declaration, schemas: Schemas): Record<string, object> {
  return Object.fromEntries(
    Object.entries(route.responses).map(([status, schema]) => [
      status,
      {
        description: SUCCESSES[status],
        headers: describeHeaders(route, Number(status)),
        ...(status !== '204' && {
          content: {
            [route.contentType ?? 'application/json']: {
              schema: schemas.of(schema, 'output'),
              example: route.examples[Number(status)],
            },
          },
        }),
      },
    ]),
  );
}

const SUCCESSES: Record<string, string> = {
  200: 'Done.',
  201: 'Created.',
  202: 'Accepted. The operation completes asynchronously.',
  204: 'Done. There is no body.',
};

function failures(route: Declaration): Record<string, object> {
  const byStatus = Map.groupBy(declaredErrorCodes(route), (code) => ERRORS[code].status);
  return Object.fromEntries(
    [...byStatus].map(([status, of]) => [
      status,
      {
        description: of.map((code) => `- \`${code}\`: ${ERRORS[code].message}`).join('\n'),
        headers: describeHeaders(route, status),
        content: json(
          { $ref: '#/components/schemas/Error' },
          { examples: Object.fromEntries(of.map((code) => [code, errorExample(route, code)])) },
        ),
      },
    ]),
  );
}

export const HEADERS = {
  'Request-Id': {
    description: 'The id of this request. Quote it if you contact us about the request.',
    schema: { type: 'string', pattern: idPattern('req') },
    example: REQUEST_ID,
  },
  'Operation-Id': {
    description:
      'Present if the request had an Idempotency-Key: the id of its operation, which `GET /operations/{operationId}` shows. A retry gets the same id. If the key belongs to another request, it is the id of that one.',
    schema: { type: 'string', pattern: idPattern('op') },
    example: OPERATION_ID,
  },
  'Idempotent-Replayed': {
    description:
      'Present if this is the stored response to an earlier request with the same Idempotency-Key.',
    schema: { type: 'string', const: 'true' },
    example: 'true',
  },
  'Test-Clock': {
    description:
      'What time it is in your test mode. Present with test keys once you have advanced your test clock.',
    schema: { type: 'string', format: 'date-time' },
    example: '2026-11-20T08:00:30.000Z',
  },
  'RateLimit-Policy': {
    description:
      'The limits of the API key and of all keys of the account and mode, as of draft-ietf-httpapi-ratelimit-headers: `q` requests at ' +
      'once after a pause, and `q` every `w` seconds. Present once a request has been counted.',
    schema: { type: 'string' },
    example: '"key";q=200;w=2, "account";q=400;w=2',
  },
  RateLimit: {
    description:
      '`r` requests can be sent now, and more in `t` seconds. If `r` is 0, `t` is what `Retry-After` says with the 429. Present once a ' +
      'request has been counted.',
    schema: { type: 'string' },
    example: '"key";r=199;t=1, "account";r=399;t=1',
  },
  'Retry-After': {
    description: 'How many seconds to wait before you retry. Always present with 429, sometimes with 503.',
    schema: { type: 'integer', minimum: 1 },
    example: 1,
  },
};

/**
 * Responses found before the key is read, or not stored, have no operation and are never replayed
 * (docs/partners/idempotency.md).
 */
const NEVER_REPLAYED = [400, 401, 403, 404, 413, 415, 429, 431, 500, 503];

function describeHeaders({ idempotencyKey, mode }: Declaration, status: number): object {
  const names: (keyof typeof HEADERS)[] = ['Request-Id'];
  if (mode !== 'live' && status !== 401) names.push('Test-Clock');
  if (status !== 401) names.push('RateLimit-Policy', 'RateLimit');
  if (idempotencyKey !== undefined && !NEVER_REPLAYED.includes(status))
    names.push('Operation-Id', 'Idempotent-Replayed');
  if (status === 429 || status === 503) names.push('Retry-After');
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

/** An example for each code, and another `validation_failed` for requests without an amount. */
export function errorExamples(): Record<string, object> {
  const examples: Record<string, ApiError> = {
    ...Object.fromEntries(ERROR_CODES.map((code) => [code, new ApiError(code)])),
    insufficient_funds: insufficientFunds(5_200, 1_000),
    insufficient_card_balance: insufficientCardBalance(2_000, 1_250),
    validation_failed: ApiError.ofField('amount', 'amount is required'),
    [UNKNOWN_PARAMETER]: ApiError.ofField('page', 'page is not a parameter of this request'),
    idempotency_key_missing: keyError('idempotency_key_missing'),
    idempotency_key_invalid: keyError('idempotency_key_invalid'),
  };
  return Object.fromEntries(
    Object.entries(examples).map(([name, error]) => [
      name,
      { summary: ERRORS[error.code].message, value: presentError(error, REQUEST_ID) },
    ]),
  );
}

function errorExample({ examples: { body } }: Declaration, code: ErrorCode): object {
  const isUnknown = code === 'validation_failed' && !(body && 'amount' in body);
  return { $ref: `#/components/examples/${isUnknown ? UNKNOWN_PARAMETER : code}` };
}

const UNKNOWN_PARAMETER = 'validation_failed_parameter';

export function json(schema: object, examples: { example?: unknown; examples?: object }): object {
  return { 'application/json': { schema, ...examples } };
}
