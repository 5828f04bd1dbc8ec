import type { IncomingMessage } from 'node:http';
import type { RouterContext } from '@koa/router';
import getRawBody from 'raw-body';
import type { z } from 'zod';
import { ApiError } from '../../domain/api-error.ts';
import { parseJson } from '../../domain/parse-json.ts';
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
 * The bytes that the card network sent, if its signature matches them.
 * @throws ApiError `invalid_api_key`, `validation_failed`, `body_too_large`
 */
export async function readSignedBytes(
  ctx: RouterContext<RequestState>,
  verifyCallback: VerifyCallback,
): Promise<Buffer> {
  const body = await readBytes(ctx.req);
  if (!verifyCallback(body, ctx.get('X-Network-Signature'))) {
    throw new ApiError('invalid_api_key', { message: 'X-Network-Signature does not match the body.' });
  }
  return body;
}

/**
 * What the card network sent, if its signature matches the bytes.
 * @throws ApiError `invalid_api_key`, `validation_failed`, `body_too_large`
 */
export async function readSignedBody<T>(
  ctx: RouterContext<RequestState>,
  verifyCallback: VerifyCallback,
  schema: z.ZodType<T>,
): Promise<T> {
  const body = await readSignedBytes(ctx, verifyCallback);
  const { value, issues } = validate(schema, parseJson(body), 'body');
  if (issues.length > 0) throw ApiError.ofFields(issues);
  return value;
}
