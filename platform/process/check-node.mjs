// Loaded first, in JavaScript that an older Node can parse, because it could not run the service's TypeScript.
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

// Halves the start-up time of the next process. If the folder can't be written, Node does without the cache.
module.enableCompileCache(fileURLToPath(new URL('../../node_modules/.cache/node', import.meta.url)));
