import { pino } from 'pino';
import { startWorker } from '../../worker/start-worker.ts';
import { scanChainWorkflowId } from '../../workflows/messages.ts';
import { openAddress, startDepositStack } from '../support/deposits/deposit-stack.ts';
import { asOwner } from '../support/postgres.ts';
import { testWorkflowBundle } from '../support/stack.ts';
import { until } from '../support/until.ts';
import { detailsOf, untilStarted } from '../support/workflows.ts';
import type { Recording } from './recording.ts';

/** Takes scanChain through everything it can meet, until a worker of the same installation has no chain configured. */
const throughEverything: Recording = async ({ client }) => {
  const { stack, chain, nodes, stop } = await startDepositStack();
  const { config } = stack;
  const workflow = client.workflow.getHandle(scanChainWorkflowId('private', config.taskQueuePrefix));
  const says = (words: string) =>
    until(`its details say "${words}"`, async () => (await detailsOf(workflow)).includes(words));
  await untilStarted(workflow);
  await says('Waiting for the first deposit address');
  await openAddress(await stack.createPartner(), 2_500);
  await says(`Scanned up to block ${chain.solidNumber()}`);
  for (const { faults } of nodes) faults.add({ fault: 'internal error' });
  await says('No block can be read at the moment');
  for (const { faults } of nodes) faults.clear();
  await asOwner(config.databaseUrl, 'ALTER TABLE chain_scan RENAME TO chain_scan_away');
  await says('The scan is failing');
  await asOwner(config.databaseUrl, 'ALTER TABLE chain_scan_away RENAME TO chain_scan');
  await says('Scanned up to block');
  await stack.stopWorker();
  const worker = await startWorker({ ...config, tron: null }, pino({ level: 'silent' }), {
    workflowBundle: await testWorkflowBundle(),
  });
  await workflow.result();
  await worker.stop();
  await stop();
  return workflow;
};

export const SCAN_CHAIN: Record<string, Recording> = { 'through-everything': throughEverything };
