import { globSync, readFileSync } from 'node:fs';
import { EXCEPTIONS, type Exception } from './account-time/exceptions.ts';
import { findViolations, OTHERS, ROOMS } from './account-time/find-violations.ts';

/** `npm run check`: what time it is for an account is said in one place (docs/decisions/sandbox-clock.md). */
const used = new Set<Exception>();
const files = ROOMS.flatMap((room) => globSync(`${room}/**/*.ts`));
const violations = files
  .filter((file) => !OTHERS.test(file.replaceAll('\\', '/')))
  .flatMap((file) => findViolations(file.replaceAll('\\', '/'), readFileSync(file, 'utf8'), used));
for (const violation of violations) console.error(violation);
const needless = EXCEPTIONS.filter((exception) => !used.has(exception));
for (const { path, lines } of needless)
  console.error(`${path}: needs no exception for ${lines ?? 'its lines'}`);
if (violations.length + needless.length > 0) {
  console.error(
    "A tenant's row is dated by account_now() or account_time() in SQL, or accountTime() in TypeScript. If the real time is " +
      'right, say why in dev/account-time/exceptions.ts.',
  );
  process.exitCode = 1;
}
