import type { RouterContext } from '@koa/router';
import type { z } from 'zod';
import { ApiError } from '../../domain/api-error.ts';
import { parseJson } from './parse-json.ts';
import { readBytes } from './read-json-body.ts';
import type { RequestState } from './request-state.ts';
import { validate } from './validate.ts';

/** Whether the network wrote this body. */
export type VerifyCallback = (rawBody: Buffer, signature: string | undefined) => boolean;

/**
 * What the card network sent, once its signature fits the bytes.
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
