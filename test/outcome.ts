import type { FileResults, Results } from './reporter.ts';

/** The result of one run of mocha. */
export interface MochaRun {
  /** Null if it ended before it reported. */
  results: Results | null;
  /** `exit code 1`, `signal SIGKILL`. */
  ended: string;
}

/** With more failures than this, a busy machine is not the cause. */
const MOST_RUN_AGAIN = 10;

/** The results of every file, and problems other than failed tests: mocha died, or a file ran no tests. */
export function resultsOf(files: readonly string[], { results, ended }: MochaRun): Results {
  if (results === null) return { '': failure('mocha', `it ended, with ${ended}, before it had reported`) };
  const found = { ...results };
  for (const file of files) found[file] ??= failure(file, 'none of its tests ran');
  if (ended !== 'exit code 0' && Object.values(found).every(({ failures }) => failures.length === 0)) {
    found[''] = failure('mocha', `it ended with ${ended}, though no test had failed`);
  }
  return found;
}

/** The files to run once more, each by itself, since other files may have kept the machine busy. */
export function filesToRunAgain(results: Results): string[] {
  const failed = failedFiles(results);
  return failed.includes('') || failed.length > MOST_RUN_AGAIN ? [] : failed;
}

/**
 * How the run ends: the last lines of the output, and whether it passed.
 * @param again the results of the files that were run once more, by file
 */
export function outcomeOf(results: Results, again: Results): { lines: string[]; isPassed: boolean } {
  const final = { ...results, ...again };
  const failed = failedFiles(final);
  const passedAlone = Object.keys(again).filter((file) => !failed.includes(file));
  const count = (of: (file: FileResults) => number) =>
    Object.values(final).reduce((sum, file) => sum + of(file), 0);
  const skipped = count((file) => file.skipped);
  return {
    lines: [
      ...(failed.length > 0 ? ['Failed:', ...failed.flatMap((file) => describe(file, final))] : []),
      ...(passedAlone.length > 0
        ? [
            'Failed beside others, passed alone. Each is a defect to look at (docs/CONTRIBUTING.md):',
            ...passedAlone.flatMap((file) => describe(file, results)),
          ]
        : []),
      `${count((file) => file.passed)} passed, ${count((file) => file.failures.length)} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`,
    ],
    isPassed: failed.length === 0,
  };
}

const failure = (title: string, error: string): FileResults => ({
  passed: 0,
  skipped: 0,
  failures: [{ title, error }],
});

const failedFiles = (results: Results): string[] =>
  Object.keys(results).filter((file) => results[file]?.failures.length);

function describe(file: string, results: Results): string[] {
  const failures = results[file]?.failures ?? [];
  return [
    `  ${file || 'outside of any file'}`,
    ...failures.flatMap(({ title, error }) => [`    ${title}`, error.replace(/^/gm, '      ')]),
  ];
}
