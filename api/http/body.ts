import type { IncomingMessage } from 'node:http';
import getRawBody from 'raw-body';
import { ApiError } from '../../domain/api-error.ts';
import { parseJson } from '../../domain/parse-json.ts';

const MAX_BODY_BYTES = 65_536;
/**
 * Twice as many values as the largest request has: one that changes all of a card's spending controls. No
 * object of a request has a tenth of these fields, and 9,000 of them would take milliseconds, in which no
 * other request is served.
 */
const LIMITS = { values: 10_000, fields: 1_000 };

/**
 * The bytes of a body that says it is JSON.
 * @param isOptional whether the body may be empty, whatever Content-Type says
 * @throws ApiError `unsupported_media_type`, `body_too_large`, `validation_failed`
 */
export async function readJsonBytes(req: IncomingMessage, isOptional = false): Promise<Buffer> {
  const bytes = isOptional ? await readBytes(req) : undefined;
  if (bytes?.length === 0) return bytes;
  const encoding = req.headers['content-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity')
    throw new ApiError('unsupported_media_type');
  if (!isJson(req.headers['content-type'])) throw new ApiError('unsupported_media_type');
  return bytes ?? (await readBytes(req));
}

/**
 * Their JSON value; `{}` if there are none and the body may be empty. @throws ApiError `validation_failed`
 */
export function parseBody(bytes: Buffer, isOptional = false): unknown {
  if (bytes.length > 0) return parseJson(bytes, LIMITS);
  if (isOptional) return {};
  throw ApiError.ofField('body', 'body is empty, and must be a JSON object');
}

/** The raw bytes of a body of at most `maxBytes`. @throws ApiError `body_too_large`, `validation_failed` */
export async function readBytes(req: IncomingMessage, maxBytes = MAX_BODY_BYTES): Promise<Buffer> {
  try {
    return await getRawBody(req, { limit: maxBytes, length: req.headers['content-length'] ?? null });
  } catch (error) {
    const kind = (error as { type?: string }).type;
    if (kind === 'entity.too.large')
      throw new ApiError('body_too_large', { message: `The body is larger than ${maxBytes / 1_024} KiB.` });
    // The last one is a client that was gone before we began to read.
    if (['request.size.invalid', 'request.aborted', 'stream.not.readable'].includes(kind ?? '')) {
      throw ApiError.ofField('body', 'body must be as long as Content-Length says');
    }
    throw error;
  }
}

function isJson(contentType: string | undefined): boolean {
  return /^application\/json[ \t]*(;[ \t]*(charset="?utf-?8"?[ \t]*)?)*$/i.test(contentType ?? '');
}
