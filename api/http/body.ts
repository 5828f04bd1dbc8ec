import type { IncomingMessage } from 'node:http';
import getRawBody from 'raw-body';
import { ApiError } from '../../domain/api-error.ts';
import { parseJson } from '../../domain/parse-json.ts';

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
