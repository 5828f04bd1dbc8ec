import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import Router from '@koa/router';
import { ApiError } from '../domain/api-error.ts';
import type { RequestState } from './http/log-request.ts';

/** Where its pages are, if there are any. */
const BUILD = fileURLToPath(new URL('../workbench/dist/', import.meta.url));

/** Its own files and nothing else: no other origin, nothing inline. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

interface BuiltFile {
  bytes: Buffer;
  gzipped: Buffer;
  type: string;
}

/**
 * The workbench's pages. Every path under /workbench/ that is no file of the build is one of its own pages,
 * which the script tells apart.
 */
export function workbenchFiles(folder = BUILD): Router<RequestState> {
  const files = readBuild(folder);
  const index = files.get('index.html');
  const router = new Router<RequestState>({ strict: true });
  router.get('/workbench', (ctx) => {
    ctx.status = 308;
    ctx.redirect('/workbench/');
  });
  router.get('/workbench/{*path}', (ctx) => {
    const path = ctx.params.path ?? '';
    const file = files.get(path) ?? (path.startsWith('assets/') ? undefined : index);
    if (file === undefined) throw new ApiError('not_found', { message: missing(index !== undefined) });
    ctx.set('Content-Security-Policy', POLICY);
    // The names of these have a hash of their content.
    if (path.startsWith('assets/')) ctx.set('Cache-Control', 'public, max-age=31536000, immutable');
    ctx.vary('Accept-Encoding');
    ctx.type = file.type;
    if (ctx.acceptsEncodings('gzip', 'identity') === 'gzip') {
      ctx.set('Content-Encoding', 'gzip');
      ctx.body = file.gzipped;
    } else ctx.body = file.bytes;
  });
  return router;
}

const missing = (isBuilt: boolean): string =>
  isBuilt
    ? 'The workbench has no such file. Reload the page: a newer one may be served.'
    : 'The pages of the workbench are not built. Run npm run workbench:build, and start the API again.';

/** Whole and once, as no request can then name another file. */
function readBuild(folder: string): ReadonlyMap<string, BuiltFile> {
  return new Map(
    names(folder).map((name) => {
      const bytes = readFileSync(join(folder, name));
      return [name, { bytes, gzipped: gzipSync(bytes), type: extname(name) }];
    }),
  );
}

function names(folder: string): string[] {
  try {
    const found = readdirSync(folder, { recursive: true, withFileTypes: true });
    return found
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(join(folder, '/').length));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
