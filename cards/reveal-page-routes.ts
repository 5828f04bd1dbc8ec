import { readFile } from 'node:fs/promises';
import Router from '@koa/router';
import { z } from 'zod';
import { checkAddress } from '../accounts/allowlist-rules.ts';
import { limitAddress } from '../api/http/address-limit.ts';
import { parseBody, readJsonBytes } from '../api/http/body.ts';
import type { RequestState } from '../api/http/log-request.ts';
import { requireOwnOrigin } from '../api/http/own-site.ts';
import type { UsageBuckets } from '../api/http/usage-buckets.ts';
import { validate } from '../api/http/validate.ts';
import { ApiError } from '../domain/api-error.ts';
import { isTokenShaped } from '../platform/crypto/token.ts';
import { describeError } from '../platform/process/describe-error.ts';
import { asAccount, asService } from '../platform/process/work-context.ts';
import { findRevealLink, giveLinkBack, type LinkPage, readLinkPage } from './reveal-links.ts';
import type { RevealLinkDependencies } from './reveal-links-routes.ts';
import { revealCard } from './secure-details-routes.ts';

/** How often an address can ask for these pages or open a link in a minute, in all processes together. */
const REQUESTS_A_MINUTE = 60;

export interface RevealPageDependencies extends RevealLinkDependencies {
  usage: Pick<UsageBuckets, 'waitMs' | 'add'>;
}

const Opening = z.strictObject({
  token: z.string().refine(isTokenShaped, 'must be what follows # in the link'),
});

/**
 * The page of a reveal link (docs/partners/reveal-links.md), outside /v1. Only its own POST opens the link: whatever
 * fetches the page, such as a preview, spends nothing.
 */
export function revealPageRoutes(dependencies: RevealPageDependencies): Router<RequestState> {
  const { site, usage, orm, logger } = dependencies;
  const router = new Router<RequestState>();

  for (const [name, type] of ASSETS) {
    router.get(`/reveal/${name}`, async (ctx) => {
      ctx.type = type;
      ctx.body = await readFile(new URL(`reveal-${name}`, import.meta.url), 'utf8');
    });
  }

  router.get('/reveal/:linkId', async (ctx) => {
    limitAddress(usage, 'reveal', ctx.state.clientAddress, REQUESTS_A_MINUTE);
    const found = await asService('reveal links', () => readLinkPage(orm, ctx.params.linkId ?? ''));
    const { frame_origins: origins, theme }: LinkPage = found ?? { frame_origins: [], theme: null };
    ctx.set('Content-Security-Policy', policy(origins));
    // An older browser's way to say what the policy says, which can't name origins.
    if (origins.length > 0) ctx.remove('X-Frame-Options');
    ctx.type = 'text/html';
    ctx.body = page(theme);
  });

  router.post('/reveal/:linkId', async (ctx) => {
    const { requestId, clientAddress } = ctx.state;
    requireOwnOrigin(ctx, site);
    limitAddress(usage, 'reveal', clientAddress, REQUESTS_A_MINUTE);
    const { value, issues } = validate(Opening, parseBody(await readJsonBytes(ctx.req)), 'body');
    if (issues.length > 0) throw ApiError.ofFields(issues);
    const linkId = ctx.params.linkId ?? '';
    const link = await asService('reveal links', () => findRevealLink(dependencies, linkId, value.token));
    const { keyId: apiKeyId, ...of } = link;
    const attempt = { ...of, apiKeyId, requestId, clientAddress: checkAddress(null, clientAddress), linkId };
    ctx.body = await asAccount(link, async () => {
      try {
        return await revealCard(dependencies, attempt);
      } catch (error) {
        if (error instanceof ApiError && error.code === 'unavailable')
          await giveLinkBack(orm, link, linkId).catch((failure) =>
            logger.warn({ requestId, error: describeError(failure) }, 'could not give a reveal link back'),
          );
        throw error;
      }
    });
  });

  return router;
}

const ASSETS = [
  ['page.js', 'text/javascript'],
  ['page.css', 'text/css'],
] as const;

const policy = (frameOrigins: readonly string[]): string =>
  [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    `frame-ancestors ${frameOrigins.length === 0 ? "'none'" : frameOrigins.join(' ')}`,
  ].join('; ');

const page = (theme: LinkPage['theme']): string => `<!doctype html>
<html lang="en"${theme === null ? '' : ` data-theme="${theme}"`}><head><meta charset="utf-8"><title>Card details</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="robots" content="noindex">
<link rel="stylesheet" href="/reveal/page.css"><script src="/reveal/page.js" defer></script></head>
<body><main>
<h1>Card details</h1>
<p id="status" role="status">They are shown once, for a minute.</p>
<button id="show" type="button">Show card details</button>
<dl id="details" hidden>
<div><dt>Number</dt><dd id="number"></dd><dd><button type="button" data-copies="number">Copy<span> number</span></button></dd></div>
<div><dt>Expires</dt><dd id="expiry"></dd><dd><button type="button" data-copies="expiry">Copy<span> expiry</span></button></dd></div>
<div><dt>CVV</dt><dd id="cvv"></dd><dd><button type="button" data-copies="cvv">Copy<span> CVV</span></button></dd></div>
<div><dt>Name</dt><dd id="name"></dd><dd><button type="button" data-copies="name">Copy<span> name</span></button></dd></div>
</dl>
<noscript><p>This page needs JavaScript to show the card.</p></noscript>
</main></body></html>
`;
