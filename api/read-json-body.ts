import type { IncomingMessage } from 'node:http';
import getRawBody from 'raw-body';
import { ApiError } from '../domain/api-error.ts';

const MAX_BODY_BYTES = 65_536;
const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * The body's JSON value. A number that isn't written as an integer comes out as NaN, so that no schema takes 1e400,
 * 1.0 or a fraction that rounds to an integer for an amount of cents.
 * @throws ApiError `unsupported_media_type`, `body_too_large`, `validation_failed`
 */
export async function readJsonBody(req: IncomingMessage): Promise<unknown> {
  const encoding = req.headers['content-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity')
    throw new ApiError('unsupported_media_type');
  if (!isJson(req.headers['content-type'])) throw new ApiError('unsupported_media_type');
  const bytes = await readBytes(req);
  try {
    return JSON.parse(utf8.decode(bytes), integersOnly);
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError) {
      throw ApiError.ofField('body', 'body must be JSON in UTF-8');
    }
    throw error;
  }
}

/** The raw bytes of a body of at most 64 KiB. @throws ApiError `body_too_large`, `validation_failed` */
export async function readBytes(req: IncomingMessage): Promise<Buffer> {
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

/** The third argument, with the number as it was written, is part of the language since ES2025. */
function integersOnly(_key: string, value: unknown, context?: { source: string }): unknown {
  return typeof value === 'number' && !/^-?\d+$/.test(context?.source ?? '') ? Number.NaN : value;
}
