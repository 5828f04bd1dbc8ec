import type { Context } from 'koa';
import { ApiError } from '../../domain/api-error.ts';
import { Mode } from '../../domain/mode.ts';
import { isTokenShaped } from '../../platform/crypto/token.ts';

/** Where browsers reach the service. Host is never believed. */
export interface OwnSite {
  /** PUBLIC_URL, an origin. */
  origin: string;
  /** The name of each mode's cookie. */
  cookieNames: Readonly<Record<Mode, string>>;
  /** Whether cookies travel only over TLS: everywhere but on loopback. */
  isSecure: boolean;
}

/** @param origin PUBLIC_URL */
export function ownSite(origin: string): OwnSite {
  const { protocol, port } = new URL(origin);
  const isSecure = protocol === 'https:';
  // Cookies ignore ports, and two stacks can run on one machine.
  const name = (mode: Mode) => (isSecure ? `__Host-wb-${mode}` : `wb-${mode}-${port}`);
  return { origin, cookieNames: { test: name('test'), live: name('live') }, isSecure };
}

/** The cookies of both modes that a browser sent. */
export const readCookies = (ctx: Context, site: OwnSite): (readonly [Mode, token: string])[] =>
  Mode.options.flatMap((mode) => {
    const token = readCookie(ctx, site, mode);
    return token === null ? [] : [[mode, token] as const];
  });

export function readCookie(ctx: Context, { cookieNames }: OwnSite, mode: Mode): string | null {
  const token = ctx.cookies.get(cookieNames[mode]);
  return token !== undefined && isTokenShaped(token) ? token : null;
}

/** @param token null removes the cookie */
export function setCookie(ctx: Context, site: OwnSite, mode: Mode, token: string | null): void {
  const { cookieNames, isSecure } = site;
  const parts = [`${cookieNames[mode]}=${token ?? ''}`, 'Path=/', 'HttpOnly', 'SameSite=Strict'];
  if (isSecure) parts.push('Secure');
  if (token === null) parts.push('Max-Age=0');
  ctx.append('Set-Cookie', parts.join('; '));
}

/**
 * Refuses what another site's page sends. A browser sends Origin with whatever changes something, and
 * Sec-Fetch-Site, which no page can set, with everything.
 * @throws ApiError `cross_origin`
 */
export function requireOwnOrigin(ctx: Context, { origin }: OwnSite): void {
  const sent = ctx.get('origin');
  if (sent === '' ? ctx.get('sec-fetch-site') === 'same-origin' : sent === origin) return;
  throw new ApiError('cross_origin');
}
