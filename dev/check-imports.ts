import { globSync, readFileSync } from 'node:fs';
import { findViolations } from './imports/find-violations.ts';

/** `npm run check`: every import follows a direction that docs/ARCHITECTURE.md allows. */
const files = globSync('**/*.{ts,tsx}', {
  exclude: (name) => ['node_modules', 'test', 'bench', '.data'].includes(String(name)),
});
const violations = files.flatMap((file) =>
  findViolations(file.replaceAll('\\', '/'), readFileSync(file, 'utf8')),
);
for (const violation of violations) console.error(violation);
if (violations.length > 0) {
  console.error('Import directions: see dev/imports/directions.ts. Move the code, or pass what it needs in.');
  process.exitCode = 1;
}
