import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import Router from '@koa/router';
import { getAbsoluteFSPath } from 'swagger-ui-dist';
import type { RequestState } from '../http/log-request.ts';

const ASSETS: Record<string, string> = {
  'swagger-ui-bundle.js': 'text/javascript',
  'swagger-ui.css': 'text/css',
};

const PAGE = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Virtual Card Issuing Partner API</title>
<link rel=icon href=data:,>
<link rel="stylesheet" href="/docs/swagger-ui.css"></head>
<body><div id="reference"></div><script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script></body></html>`;

const START = `SwaggerUIBundle({ url: '/openapi.json', dom_id: '#reference', deepLinking: true, validatorUrl: null });`;

/** `GET /openapi.json`, and `GET /docs` to read it in a browser. This process serves everything; nothing comes from a CDN. */
export function reference(document: object): Router<RequestState> {
  const router = new Router<RequestState>();
  const text = JSON.stringify(document);
  router.get('/openapi.json', (ctx) => {
    ctx.type = 'application/json';
    ctx.body = text;
  });
  router.get('/docs', (ctx) => {
    // Swagger UI uses inline styles; the rest of the policy stays.
    ctx.set(
      'Content-Security-Policy',
      "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:",
    );
    ctx.type = 'text/html';
    ctx.body = PAGE;
  });
  router.get('/docs/start.js', (ctx) => {
    ctx.type = 'text/javascript';
    ctx.body = START;
  });
  for (const [asset, type] of Object.entries(ASSETS)) {
    router.get(`/docs/${asset}`, (ctx) => {
      ctx.type = type;
      ctx.body = createReadStream(join(getAbsoluteFSPath(), asset));
    });
  }
  return router;
}
