import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { createTronChain } from '../deposits/tron/create-tron-chain.ts';
import type { SolidBlock, TronChain } from '../deposits/tron/tron-chain.ts';
import { Environment } from '../platform/config/environment.ts';
import { parseEnvironment } from '../platform/config/read-environment.ts';
import { tronConfig } from '../platform/config/tron.ts';

/**
 * `npm run smoke:nile`: reads the Nile test network as the scan does, and prints what it saw. Nothing is
 * written anywhere. TRON_NODE_URLS, TRON_API_KEY and TRON_USDT_CONTRACT replace Nile's own node and token.
 */
const BLOCKS = 10;
const TOO_LONG = AbortSignal.timeout(90_000);

const { values } = parseEnvironment(
  Environment.pick({ TRON_NODE_URLS: true, TRON_API_KEY: true, TRON_USDT_CONTRACT: true }),
  process.env,
);
const config = tronConfig({
  ...values,
  TRON_NETWORK: 'nile',
  TRON_XPUB: '',
  TRON_SCAN_INTERVAL: 3_000,
});
if (config === null) throw new Error('there is no configuration of Nile');
const chain = createTronChain(config, pino({ level: 'warn' }));
try {
  await readNile(chain);
} catch (error) {
  console.error(`Nile can't be read: ${error instanceof Error ? error.message : error}`);
  process.exitCode = 1;
} finally {
  chain.close();
}

async function readNile(tron: TronChain): Promise<void> {
  const start = await tron.findLastBlockBefore(new Date(Date.now() - 120_000), TOO_LONG);
  console.log(`2 minutes ago: block ${start.number} of ${start.time.toISOString()}`);
  const blocks: SolidBlock[] = [];
  while (blocks.length < BLOCKS) {
    const more = await tron.readBlocks(blocks.at(-1) ?? start, BLOCKS - blocks.length, TOO_LONG);
    for (const { number, hash, time, transfers, node } of more) {
      const age = Math.round((Date.now() - time.getTime()) / 1_000);
      console.log(
        `block ${number} ${hash.slice(16, 28)}… ${age} s old, ${transfers.length} USDT transfers, by ${node}`,
      );
    }
    blocks.push(...more);
    if (more.length === 0) await sleep(config?.scanIntervalMs ?? 0, undefined, { signal: TOO_LONG });
  }
  const seen = await tron.readUnsolid(null, TOO_LONG);
  console.log(
    seen === null
      ? 'newest block: not available'
      : `newest block: ${seen.number}, not solid yet, with ${seen.transfers.length} USDT transfers`,
  );
  for (const { name, state, problem } of tron.state().nodes)
    console.log(`node ${name}: ${state}${problem === null ? '' : ` (${problem})`}`);
}
