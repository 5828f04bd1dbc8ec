import type { IncomingMessage } from 'node:http';
import type { RouterContext } from '@koa/router';
import getRawBody from 'raw-body';
import type { z } from 'zod';
import { ApiError } from '../../domain/api-error.ts';
import type { RequestState } from './log-request.ts';
import { validate } from './validate.ts';

const MAX_BODY_BYTES = 65_536;

/**
 * The body's JSON value.
 * @param isOptional whether the body may be empty; an empty one is `{}`, whatever Content-Type says
 * @throws ApiError `unsupported_media_type`, `body_too_large`, `validation_failed`
 */
export async function readJsonBody(req: IncomingMessage, isOptional = false): Promise<unknown> {
  const bytes = isOptional ? await readBytes(req) : undefined;
  if (bytes?.length === 0) return {};
  const encoding = req.headers['content-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity')
    throw new ApiError('unsupported_media_type');
  if (!isJson(req.headers['content-type'])) throw new ApiError('unsupported_media_type');
  return parseJson(bytes ?? (await readBytes(req)));
}

/** The raw bytes of a body of at most 64 KiB. @throws ApiError `body_too_large`, `validation_failed` */
async function readBytes(req: IncomingMessage): Promise<Buffer> {
  try {
    return await getRawBody(req, { limit: MAX_BODY_BYTES, length: req.headers['content-length'] ?? null });
  } catch (error) {
    const kind = (error as { type?: string }).type;
    if (kind === 'entity.too.large') throw new ApiError('body_too_large');
    if (kind === 'request.size.invalid' || kind === 'request.aborted') {
      throw ApiError.ofField('body', 'body must be as long as Content-Length says');
    }
    throw error;
  }
}

function isJson(contentType: string | undefined): boolean {
  return /^application\/json *(; *charset="?utf-?8"? *)?$/i.test(contentType ?? '');
}

/** Whether the card network signed this body. */
export type VerifyCallback = (rawBody: Buffer, signature: string | undefined) => boolean;

/**
 * What the card network sent, if its signature matches the bytes.
 * @throws ApiError `invalid_api_key`, `validation_failed`, `body_too_large`
 */
export async function readSignedBody<T>(
  ctx: RouterContext<RequestState>,
  verifyCallback: VerifyCallback,
  schema: z.ZodType<T>,
): Promise<T> {
  const body = await readBytes(ctx.req);
  if (!verifyCallback(body, ctx.get('X-Network-Signature'))) {
    throw new ApiError('invalid_api_key', { message: 'X-Network-Signature does not match the body.' });
  }
  const { value, issues } = validate(schema, parseJson(body), 'body');
  if (issues.length > 0) throw ApiError.ofFields(issues);
  return value;
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const STRINGS = /"[^"\\]*(?:\\.[^"\\]*)*"/g;

/**
 * The JSON value of a body. A number that isn't written as an integer becomes NaN, so that no schema accepts 1e400, 1.0 or
 * a fraction that rounds to an integer as an amount of cents. A field that is sent twice is refused: parsers disagree
 * about which of two amounts counts.
 * @throws ApiError `validation_failed`
 */
export function parseJson(bytes: Buffer): unknown {
  try {
    return parse(utf8.decode(bytes));
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError) {
      throw ApiError.ofField('body', 'body must be valid JSON in UTF-8, without a byte order mark');
    }
    if (error instanceof RangeError) throw ApiError.ofField('body', 'body is nested too deeply');
    throw error;
  }
}

function parse(text: string): unknown {
  // The reviver also visits the whole value, as if that were a member of an object.
  let members = -1;
  const value: unknown = JSON.parse(
    text,
    function integersOnly(
      this: unknown,
      _key: string,
      value: unknown,
      context?: { source: string },
    ): unknown {
      if (!Array.isArray(this)) members += 1;
      // `source` is the number as it was written (ES2025).
      return typeof value === 'number' && !/^-?\d+$/.test(context?.source ?? '') ? Number.NaN : value;
    },
  );
  const names = text.replace(STRINGS, '').split(':').length - 1;
  if (names > members) throw ApiError.ofField('body', 'body must not contain a field twice');
  return value;
}
