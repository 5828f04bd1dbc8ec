import { readdirSync } from 'node:fs';
import { pino } from 'pino';
import { installRuntime } from '../platform/temporal/install-runtime.ts';
import { startServers } from '../test/support/start-servers.ts';
import { startProductionServer } from './support/temporal-server.ts';

/**
 * `npm run bench [name …]`: each measurement prints the server it ran on, what it compares in the same run,
 * and the ratios.
 */
const available = readdirSync(import.meta.dirname)
  .filter((file) => file.endsWith('.ts') && file !== 'main.ts')
  .map((file) => file.slice(0, -3));
const asked = process.argv.slice(2);
const unknown = asked.filter((name) => !available.includes(name));
if (unknown.length > 0) {
  console.error(`There is no measurement "${unknown.join(', ')}". There are: ${available.join(', ')}.`);
  process.exit(2);
}

installRuntime(pino({ level: 'error' }, process.stderr));
const named = process.env.TEMPORAL_ADDRESS || process.env.TEMPORAL_CLI;
const stopServers = await startServers(named ? undefined : startProductionServer);
try {
  for (const name of asked.length > 0 ? asked : available) {
    console.log(`\n# ${name}`);
    const { run } = (await import(`./${name}.ts`)) as { run(): Promise<void> };
    await run();
  }
} finally {
  await stopServers();
}
process.exit(0);
