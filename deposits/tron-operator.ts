import type { Command } from 'commander';
import { z } from 'zod';
import { ChainName } from '../domain/deposit.ts';
import { read, WholeNumber } from '../operator/flag-values.ts';
import type { Verbs } from '../operator/verbs.ts';
import { rescanFrom } from './chain-scan.ts';
import { readScan } from './tron-operator-reads.ts';

const ChainOption = z.enum(ChainName.options, `must be one of ${ChainName.options.join(', ')}`);
const NETWORK =
  'mainnet, nile, shasta or private (default: TRON_NETWORK, or else the only one scanned so far)';

interface Flags {
  network?: ChainName;
}

export function tronNoun(tron: Command, verbs: Verbs): void {
  tron.addHelpText('after', verbs.examples('tron status', 'tron rescan --from 70123456'));
  statusVerb(tron, verbs);
  rescanVerb(tron, verbs);
}

function statusVerb(tron: Command, { session, verb, examples }: Verbs): void {
  tron
    .command('status')
    .description('how far the chain has been scanned, how far behind the scan is, and the state of the nodes')
    .option('--network <name>', NETWORK, read(ChainOption))
    .addHelpText('after', examples('tron status', 'tron status --network mainnet --json'))
    .action(
      verb(async ({ network }: Flags) => {
        const scan = await readScan(await session.orm(), network ?? null, session.config);
        return { value: { ...scan, workflow_status: await session.workflowStatus(scan.workflow_id) } };
      }),
    );
}

function rescanVerb(tron: Command, { session, verb, examples }: Verbs): void {
  tron
    .command('rescan')
    .description('scan the chain again from a block on; payments found before are not changed')
    .requiredOption(
      '--from <block>',
      'the first block to scan again',
      read(WholeNumber(z.number().min(1, 'must be at least 1'))),
    )
    .option('--network <name>', NETWORK, read(ChainOption))
    .addHelpText('after', examples('tron rescan --from 70123456'))
    .action(
      verb(async ({ from, network }: Flags & { from: number }) => {
        const orm = await session.orm();
        const scan = await readScan(orm, network ?? null, session.config);
        const rescan = { network: scan.network, fromBlock: from };
        const { cameTo } = await rescanFrom(await session.operator(), rescan);
        return {
          value: await readScan(orm, scan.network, session.config),
          note: `The scan was at block ${cameTo}. Nothing already credited changes.`,
        };
      }),
    );
}
