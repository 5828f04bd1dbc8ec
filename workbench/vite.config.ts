import { defineConfig } from 'vite';

/** The API that `npm run workbench:dev` asks. */
const api = process.env.PUBLIC_URL ?? 'http://127.0.0.1:3000';

export default defineConfig({
  root: import.meta.dirname,
  base: '/workbench/',
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    // The policy that the API serves the pages with allows nothing inline.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: {
      // "use client" means nothing to a page that is rendered by the browser alone.
      onLog: (level, log, report) => log.code !== 'MODULE_LEVEL_DIRECTIVE' && report(level, log),
    },
  },
  server: {
    proxy: Object.fromEntries(
      ['^/v1/', '^/workbench/session(\\?|$)'].map((path) => [
        path,
        {
          target: api,
          changeOrigin: true,
          configure: (proxy) => {
            // The API takes requests by cookie from its own origin alone, and here the page has another port.
            proxy.on('proxyReq', (request) => {
              request.setHeader('origin', api);
              request.removeHeader('sec-fetch-site');
            });
          },
        },
      ]),
    ),
  },
});
