import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { filesToRunAgain, type MochaRun, outcomeOf, resultsOf } from './outcome.ts';
import type { Results } from './reporter.ts';
import type { ServersOfRun } from './support/servers-of-run.ts';

/**
 * `npm test` and `npm run test:unit`: runs mocha in its parallel mode. Each process has a PostgreSQL and a Temporal server of
 * its own. Tests mostly wait, so there are five processes for two cores. The slowest files run first. Files that share a stack
 * run last, since the stack keeps working until its process ends. A file that fails is run once more at the end, by itself,
 * and has failed if it fails again.
 *
 *     npx node test/run.ts [--unit] [--jobs N] [--record] [FILE …]
 *
 * `--unit` runs test/unit, which needs no servers. `--record` saves how long each file took, here and in the docs.
 */
const { values: flags, positionals } = parseArgs({
  options: {
    unit: { type: 'boolean', default: false },
    record: { type: 'boolean', default: false },
    jobs: { type: 'string' },
  },
  allowPositionals: true,
});
const DURATIONS = new URL('durations.json', import.meta.url);
const CONTRIBUTING = new URL('../docs/CONTRIBUTING.md', import.meta.url);
const MOCHA = fileURLToPath(import.meta.resolve('mocha/bin/mocha.js'));
const COMPILE_CACHE = fileURLToPath(new URL('../node_modules/.cache/node', import.meta.url));
/** For a file that was never recorded: it runs early, in case it is slow. */
const UNKNOWN_SECONDS = 100;

type Durations = Record<string, number>;

await using cleanUp = new AsyncDisposableStack();
const folder = await mkdtemp(join(tmpdir(), 'card-issuing-tests-'));
cleanUp.defer(() => rm(folder, { recursive: true, force: true }));

const recorded: Durations = JSON.parse(await readFile(DURATIONS, 'utf8'));
const secondsOf = (file: string) => recorded[file] ?? UNKNOWN_SECONDS;
const all = globSync(flags.unit ? 'test/unit/**/*.test.ts' : 'test/**/*.test.ts');
const asked = positionals.map((file) => relative('.', file));
const sharesStack = (file: string) => Number(readFileSync(file, 'utf8').includes('/shared-stack.ts'));
const files = (asked.length > 0 ? asked : all).toSorted(
  (a, b) => sharesStack(a) - sharesStack(b) || secondsOf(b) - secondsOf(a),
);
// With one job, mocha does not run in its parallel mode.
const jobs = Math.max(
  2,
  Number(flags.jobs ?? (flags.unit ? 3 : Math.min(Math.ceil(2.5 * availableParallelism()), 8))),
);

const needsServers = !flags.unit && files.some((file) => !file.startsWith('test/unit/'));
const servers = needsServers ? await startServers() : undefined;
const durationsFile = join(folder, 'durations');
await writeFile(durationsFile, '');
let mocha: ChildProcess | undefined;
let isStopped = false;
// The terminal sends Ctrl-C to mocha as well. The servers are stopped once mocha has ended.
process.on('SIGINT', () => {
  isStopped = true;
});
process.on('SIGTERM', () => {
  isStopped = true;
  mocha?.kill('SIGTERM');
});

const results = resultsOf(files, await runMocha(files));
const again: Results = {};
for (const file of filesToRunAgain(results)) {
  if (isStopped) break;
  console.log(`\nOnce more, by itself: ${file}`);
  Object.assign(again, resultsOf([file], await runMocha([file])));
}
await reportDurations();
const outcome = outcomeOf(results, again);
console.log(['', ...outcome.lines].join('\n'));
process.exitCode = outcome.isPassed ? 0 : 1;

async function runMocha(files: readonly string[]): Promise<MochaRun> {
  const resultsFile = join(folder, 'results.json');
  await rm(resultsFile, { force: true });
  const reporter = fileURLToPath(new URL('reporter.ts', import.meta.url));
  mocha = spawn(
    process.execPath,
    [MOCHA, '--parallel', '--jobs', String(jobs), '--reporter', reporter, '--fail-zero', ...files],
    {
      stdio: 'inherit',
      env: {
        ...process.env,
        NODE_COMPILE_CACHE: COMPILE_CACHE,
        // Tests stop workers in the middle of their work, which can make the SDK's core panic. Its backtraces do not help.
        RUST_BACKTRACE: '0',
        TEST_RUN: '1',
        TEST_DURATIONS: durationsFile,
        TEST_RESULTS: resultsFile,
        TEST_SERVERS: servers && JSON.stringify(servers),
      },
    },
  );
  const [code, signal] = (await once(mocha, 'exit')) as [number | null, NodeJS.Signals | null];
  const results: Results | null = await readFile(resultsFile, 'utf8')
    .then(JSON.parse)
    .catch(() => null);
  return { results, ended: signal === null ? `exit code ${code}` : `signal ${signal}` };
}

async function startServers(): Promise<ServersOfRun[]> {
  const { bundleForTests } = await import('./support/stack.ts');
  const bundleFile = join(folder, 'workflows.json');
  const bundling = bundleForTests().then((bundle) => writeFile(bundleFile, JSON.stringify(bundle)));
  // The first pair by itself, since it may have to download or build the Temporal server.
  const first = await startPair(bundleFile);
  const others = await Promise.all(Array.from({ length: jobs - 1 }, () => startPair(bundleFile)));
  await bundling;
  return [first, ...others];
}

async function startPair(bundleFile: string): Promise<ServersOfRun> {
  const { startTestPostgres } = await import('./support/postgres.ts');
  const { startTestTemporal } = await import('./support/temporal.ts');
  const postgres = await startTestPostgres();
  cleanUp.defer(() => postgres.stop());
  const { stop, address, namespace, source } = await startTestTemporal(postgres);
  cleanUp.defer(stop);
  return { postgresUrl: postgres.url, temporal: { address, namespace, source }, bundleFile };
}

/** Prints which files took longest, so that a new slow one is noticed. */
async function reportDurations(): Promise<void> {
  const took: Durations = {};
  for (const line of (await readFile(durationsFile, 'utf8')).trim().split('\n').filter(Boolean)) {
    const [file = '', seconds] = line.split(' ');
    took[file] = Number(seconds);
  }
  const slowest = Object.entries(took).toSorted(([, a], [, b]) => b - a);
  console.log(`The slowest of ${slowest.length} files:`);
  for (const [file, seconds] of slowest.slice(0, 10))
    console.log(`${seconds.toFixed(1).padStart(7)} s  ${file}`);
  if (!flags.record) return;
  const all = { ...recorded, ...took };
  const kept = Object.entries(all).filter(([file]) => globSync(file).length > 0);
  await writeFile(DURATIONS, `${JSON.stringify(Object.fromEntries(kept.toSorted()), null, 2)}\n`);
  const rows = kept.toSorted(([, a], [, b]) => b - a).slice(0, 10);
  const table = ['| file | seconds |', '|---|---|', ...rows.map(([file, s]) => `| ${file} | ${s} |`)].join(
    '\n',
  );
  const page = await readFile(CONTRIBUTING, 'utf8');
  await writeFile(CONTRIBUTING, page.replace(/\| file \| seconds \|\n(\|.*\n)*/, `${table}\n`));
}
