import { hash, timingSafeEqual } from 'node:crypto';
import { createRemoteJWKSet, errors, jwtVerify } from 'jose';
import type { Context, Middleware } from 'koa';
import type { CodecConfig } from '../../platform/config/codec.ts';

export interface State {
  /** Who sent the request: `token`, or the subject of an access token. */
  by?: string;
  /** How many payloads the request had. */
  payloads?: number;
}

/**
 * Accepts one of CODEC_TOKENS, in `Authorization` or as the first part of the path, and access tokens of the
 * configured issuer, which Temporal's UI passes on. Any other request gets 401.
 */
export function createCodecAuthenticate({
  tokens,
  issuer,
}: Pick<CodecConfig, 'tokens' | 'issuer'>): Middleware<State> {
  const digests = tokens.map(digestToken);
  const isOurs = (token: string) => {
    const digest = digestToken(token);
    return digests.some((known) => timingSafeEqual(known, digest));
  };
  const keys = issuer && createRemoteJWKSet(new URL(issuer.jwksUrl));

  async function whoAsks(ctx: Context): Promise<string | null> {
    const inPath: unknown = ctx.params?.token;
    if (typeof inPath === 'string') return isOurs(inPath) ? 'token' : null;
    const token = /^Bearer +(\S+)$/i.exec(ctx.get('Authorization'))?.[1];
    if (token === undefined) return null;
    if (isOurs(token)) return 'token';
    if (issuer === null || keys === null) return null;
    try {
      const { payload } = await jwtVerify(token, keys, {
        issuer: issuer.issuer,
        audience: issuer.audience,
        requiredClaims: ['exp', 'sub'],
        algorithms: ['RS256', 'RS384', 'RS512', 'PS256', 'ES256', 'ES384', 'EdDSA'],
      });
      return payload.sub ?? null;
    } catch (error) {
      if (error instanceof errors.JOSEError && !(error instanceof errors.JWKSTimeout)) return null;
      throw error;
    }
  }

  return async (ctx, next) => {
    const by = await whoAsks(ctx);
    if (by === null) {
      ctx.status = 401;
      ctx.set('WWW-Authenticate', 'Bearer');
      ctx.body = { error: 'send a token of CODEC_TOKENS, or an access token of the configured issuer' };
      return;
    }
    ctx.state.by = by;
    await next();
  };
}

const digestToken = (token: string): Buffer => hash('sha256', token, 'buffer');
