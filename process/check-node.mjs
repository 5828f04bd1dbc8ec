// Runs before anything an older Node could not read: the service is TypeScript, run as it is.
import module from 'node:module';
import { fileURLToPath } from 'node:url';

const OLDEST = 24;

if (Number.parseInt(process.versions.node, 10) < OLDEST) {
  console.error(
    `This needs Node.js ${OLDEST} or newer, and ${process.execPath} is ${process.version}. Install a newer one, or run ` +
      '"npm ci" without --omit=dev: on Linux and macOS that brings one along for npm scripts.',
  );
  process.exit(1);
}

// What one process has compiled starts the next in half the time. Where the folder can't be written, nothing is kept.
module.enableCompileCache(fileURLToPath(new URL('node_modules/.cache/node', import.meta.url)));
