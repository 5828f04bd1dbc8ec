import { EXCEPTIONS, type Exception } from './exceptions.ts';

/** The code that writes or judges tenants' rows. */
export const ROOMS = [
  'accounts',
  'api',
  'cards',
  'deposits',
  'exports',
  'issuers',
  'ledger',
  'payments',
  'requests',
  'webhooks',
];

/**
 * What persons, workers and the outside world have to do with it, by the names of files: theirs is the real
 * time.
 */
export const OTHERS =
  /(?:^|[/-])(?:attention|activities|metrics|tables|resource|rules)\.ts$|^issuers\/(?:[^/]+\.ts$|increase\/|lithic\/|simulated\/)|^deposits\/tron\/|^webhooks\/client\//;

const REAL_TIME =
  /\bnow\(\)(?<!performance\.now\(\))|\b(?:clock_timestamp|statement_timestamp|transaction_timestamp|current_timestamp|current_date|localtimestamp)\b|'clock_timestamp'|\bnew Date\(\)|\breadIdTime\(/i;
/** What turns a real time into an account's on the same line, or is no code. */
const TURNED = /\b(?:account_time|accountTime)\(|^\s*(?:\*|\/\/|\/\*)|^import /;

/**
 * The lines of a file that take the real time, where an account's time may be another.
 * @param path from the project's root, with slashes
 * @param used gets the exceptions that were needed
 */
export function findViolations(path: string, code: string, used: Set<Exception> = new Set()): string[] {
  return code.split('\n').flatMap((line, index) => {
    if (!REAL_TIME.test(line) || TURNED.test(line)) return [];
    const allowed = EXCEPTIONS.filter(
      (one) => path.startsWith(one.path) && (one.lines === undefined || one.lines.test(line)),
    );
    for (const one of allowed) used.add(one);
    return allowed.length > 0 ? [] : [`${path}:${index + 1}: takes the real time: ${line.trim()}`];
  });
}
