import { randomInt } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { Command, InvalidArgumentError } from 'commander';
import { describeReport } from './report.ts';
import { soak } from './soak.ts';

/** `npm run soak -- --kills N`: docs/reliability.md. Exit code 1 if there is a difference, 2 for wrong usage. */
const whole = (text: string): number => {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('It must be a whole number above zero.');
  return Number(text);
};

const options = new Command('npm run soak --')
  .description(
    'Kills API, worker, Temporal and PostgreSQL (-9) under load, and compares what clients saw with what is stored.',
  )
  .option('--kills <number>', 'how many processes are killed', whole, 30)
  .option('--minutes <number>', 'ends the load after this time, even with fewer kills', whole, 24 * 60)
  .option('--seed <number>', 'repeats the operations and the kills of this seed', whole)
  .option('--keep', 'keeps logs and data even if there is no difference')
  .option('--json <file>', 'also writes the report to this file, as JSON')
  .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2))
  .parse()
  .opts<{ kills: number; minutes: number; seed?: number; keep?: true; json?: string }>();

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(130));

const report = await soak({
  kills: options.kills,
  seed: options.seed ?? randomInt(1_000_000_000),
  longestMs: options.minutes * 60_000,
  size: { rounds: 6, lanes: 60, depositLanes: 15 },
  keep: options.keep ?? false,
  progress: (line) => console.log(line),
  progressEveryMs: 10_000,
});
console.log(describeReport(report));
if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(report, null, 2)}\n`);
process.exit(report.differences.length > 0 ? 1 : 0);
