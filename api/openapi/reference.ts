import { promisify } from 'node:util';
import { brotliCompress, constants } from 'node:zlib';
import Router from '@koa/router';

import type { RequestState } from '../http/log-request.ts';

const PAGE = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Virtual Card Issuing Partner API</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,"></head>
<body><div id="reference"></div><script src="/docs/scalar.js"></script>
<script src="/docs/start.js"></script></body></html>`;

/**
 * The Content-Security-Policy of pages for people. Scalar uses inline styles. It also asks whether it may
 * compile code, and does without.
 */
export const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "connect-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** What would ask another host is switched off; the policy below would stop it as well. */
const START = `Scalar.createApiReference('#reference', {
  url: '/openapi.json',
  withDefaultFonts: false,
  telemetry: false,
  hideClientButton: true,
  showDeveloperTools: 'never',
  mcp: { disabled: true },
  agent: { disabled: true },
  // Each operation has samples of its own.
  hiddenClients: true,
  persistAuth: false,
  operationTitleSource: 'summary',
  documentDownloadType: 'json',
  defaultOpenFirstTag: false,
  // Each "Send" is a request of its own, unless the reader has written a key.
  onBeforeRequest({ request, requestBuilder }) {
    if (request.method !== 'GET' && !request.headers.get('Idempotency-Key'))
      requestBuilder.headers.set('Idempotency-Key', crypto.randomUUID());
  },
});`;

/**
 * `GET /openapi.json`, and `GET /docs` to read it in a browser, to which `GET /` leads. This process serves
 * everything; nothing comes from a CDN.
 */
export function reference(document: object): Router<RequestState> {
  const router = new Router<RequestState>();
  const text = `${JSON.stringify(document)}\n`;
  router.get('/', (ctx) => ctx.redirect('/docs'));
  router.get('/openapi.json', (ctx) => {
    ctx.type = 'application/json';
    ctx.body = text;
  });
  router.get('/docs', (ctx) => {
    ctx.set('Content-Security-Policy', PAGE_POLICY);
    ctx.type = 'text/html';
    ctx.body = PAGE;
  });
  router.get('/docs/start.js', (ctx) => {
    ctx.type = 'text/javascript';
    ctx.body = START;
  });
  router.get('/docs/scalar.js', async (ctx) => {
    ctx.type = 'text/javascript';
    ctx.vary('Accept-Encoding');
    bundle ??= loadBundle();
    const { plain, brotli } = await bundle;
    if (ctx.acceptsEncodings('br', 'identity') === 'br') {
      ctx.set('Content-Encoding', 'br');
      ctx.body = brotli;
    } else {
      ctx.body = plain;
    }
  });
  return router;
}

/** Loaded for the first reader, because it takes 5 MB. */
let bundle: ReturnType<typeof loadBundle> | undefined;

/**
 * Scalar's bundle for browsers. We take it from its Fastify plugin, the one package that has all of it in one
 * file (docs/decisions/reference.md).
 */
async function loadBundle(): Promise<{ plain: Buffer; brotli: Buffer }> {
  const [{ fastify }, { default: scalar }] = await Promise.all([
    import('fastify'),
    import('@scalar/fastify-api-reference'),
  ]);
  const app = fastify();
  await app.register(scalar, { routePrefix: '/docs', configuration: { url: '/openapi.json' } });
  const { rawPayload: plain } = await app.inject('/docs/js/scalar.js');
  await app.close();
  const brotli = await promisify(brotliCompress)(plain, { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } });
  return { plain, brotli };
}
