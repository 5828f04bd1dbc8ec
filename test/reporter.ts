import { writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import Mocha, { type MochaOptions, type Runner, type Test } from 'mocha';

/** The results of one file's tests. */
export interface FileResults {
  passed: number;
  skipped: number;
  failures: { title: string; error: string }[];
}

/** Results by file. What belongs to no file, such as an error between two files, is under the empty name. */
export type Results = Record<string, FileResults>;

const { Base, Spec } = Mocha.reporters;
const LINES = 6;
const COLUMNS = 300;

/**
 * Mocha's usual output without its summary, which test/run.ts prints. Writes the results by file, as JSON, to the file that
 * TEST_RESULTS names.
 */
// biome-ignore lint/style/noDefaultExport: mocha takes a reporter module's default.
export default class SpecWithResults extends Spec {
  readonly #results: Results = {};

  constructor(runner: Runner, options: MochaOptions) {
    super(runner, options);
    runner.on('pass', (test) => {
      this.#of(test).passed += 1;
    });
    runner.on('pending', (test) => {
      this.#of(test).skipped += 1;
    });
    runner.on('fail', (test, error) => {
      this.#of(test).failures.push({ title: test.titlePath().join(' › '), error: firstLines(error) });
    });
  }

  #of({ file }: Test): FileResults {
    const name = file === undefined || file === null ? '' : relative('.', file);
    this.#results[name] ??= { passed: 0, skipped: 0, failures: [] };
    return this.#results[name];
  }

  /** The run can end several times: each file that could not be loaded is reported after its end. */
  override epilogue(): void {}

  override done(failures: number, ended: (failures: number) => void): void {
    if (this.failures.length > 0) (Base as unknown as { list(tests: Test[]): void }).list(this.failures);
    writeFileSync(process.env.TEST_RESULTS ?? '', JSON.stringify(this.#results));
    ended(failures);
  }
}

/** The messages of an error and its causes, and where in the test it was thrown. */
function firstLines(error: Error): string {
  const { stack = '', message, cause } = error;
  const lines = (stack || message).split('\n').filter((line) => line.trim() !== '');
  const said = lines.filter((line) => !/^\s+at /.test(line));
  const place = lines.find((line) => /^\s+at .*\/test\//.test(line))?.trim();
  const isCaused = typeof cause === 'object' && cause !== null && 'message' in cause;
  return [
    ...said.slice(0, isCaused ? 1 : LINES),
    ...(isCaused ? [`caused by ${firstLines(cause as Error)}`] : []),
    ...(place === undefined || isCaused ? [] : [place]),
  ]
    .map((line) => line.slice(0, COLUMNS))
    .join('\n');
}
