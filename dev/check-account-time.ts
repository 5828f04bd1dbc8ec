import { globSync, readFileSync } from 'node:fs';
import { EXCEPTIONS } from './account-time/exceptions.ts';

/** The code that writes or judges tenants' rows. */
const ROOMS = '{accounts,api,cards,deposits,exports,issuers,ledger,payments,requests,webhooks}';
/** What persons, workers and the outside world have to do with it, by the names of files. */
const OTHERS =
  /(?:^|[/-])(?:attention|activities|metrics|tables|resource|rules)\.ts$|^issuers\/(?:[^/]+\.ts$|increase\/|lithic\/|simulated\/)|^deposits\/tron\/|^webhooks\/client\//;

const REAL_TIME =
  /\bnow\(\)(?<!performance\.now\(\))|\b(?:clock_timestamp|statement_timestamp|transaction_timestamp|current_timestamp|current_date|localtimestamp)\b|'clock_timestamp'|\bnew Date\(\)|\breadIdTime\(/i;
/** What turns a real time into an account's on the same line, or is no code. */
const TURNED = /\b(?:account_time|accountTime)\(|^\s*(?:\*|\/\/|\/\*)|^import /;

/** `npm run check`: what time it is for an account is said in one place (docs/decisions/sandbox-clock.md). */
const problems: string[] = [];
const needless = new Set(
  Object.entries(EXCEPTIONS).flatMap(([why, places]) =>
    Object.entries(places).map(([path, lines]) => ({ why, path, lines })),
  ),
);
const exceptions = [...needless];
for (const file of globSync(`${ROOMS}/**/*.ts`).map((path) => path.replaceAll('\\', '/'))) {
  if (OTHERS.test(file)) continue;
  for (const [index, line] of readFileSync(file, 'utf8').split('\n').entries()) {
    if (!REAL_TIME.test(line) || TURNED.test(line)) continue;
    const allowed = exceptions.filter(({ path, lines }) => file.startsWith(path) && lines.test(line));
    for (const one of allowed) needless.delete(one);
    if (allowed.length === 0) problems.push(`${file}:${index + 1}: takes the real time: ${line.trim()}`);
  }
}
for (const { why, path } of needless) problems.push(`${path}: needs no exception for this: ${why}`);
for (const problem of problems) console.error(problem);
if (problems.length > 0) {
  console.error(
    "A tenant's row is dated by account_now() or account_time() in SQL, or accountTime() in TypeScript. If the real time is " +
      'right, say why in dev/account-time/exceptions.ts.',
  );
  process.exitCode = 1;
}
