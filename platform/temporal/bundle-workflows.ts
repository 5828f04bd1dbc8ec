import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parentPort, Worker as Thread, workerData } from 'node:worker_threads';
import { bundleWorkflowCode, type Logger, type WorkflowBundleWithSourceMap } from '@temporalio/worker';
import { BUNDLED } from './plugin.ts';

const IN_THREAD = 'bundle the workflows';

/** Bundles the workflows' code for the sandbox, which takes about a second. */
export function bundleWorkflows(logger: Logger): Promise<WorkflowBundleWithSourceMap> {
  const workflowsPath = fileURLToPath(new URL('../../workflows/index.ts', import.meta.url));
  return bundleWorkflowCode({ ...BUNDLED, workflowsPath, logger });
}

/**
 * {@link bundleWorkflows} in a thread, for a process that has requests to answer: the bundler would block it
 * meanwhile.
 */
export function bundleInThread(): Promise<WorkflowBundleWithSourceMap> {
  return new Promise((resolve, reject) => {
    const thread = new Thread(fileURLToPath(import.meta.url), { workerData: IN_THREAD });
    thread.once('message', resolve);
    thread.once('error', reject);
    thread.once('exit', () => reject(new Error('bundling the workflows ended without a bundle')));
  });
}

const SILENT: Logger = { log() {}, trace() {}, debug() {}, info() {}, warn() {}, error() {} };

if (workerData === IN_THREAD) {
  parentPort?.postMessage(await bundleWorkflows(SILENT));
} else if (import.meta.main) {
  // `node platform/temporal/bundle-workflows.ts FILE` writes the file for WORKFLOW_BUNDLE when an image is
  // built.
  const [file = 'workflow-bundle.js'] = process.argv.slice(2);
  const { code } = await bundleWorkflows(SILENT);
  writeFileSync(file, code);
  console.log(`wrote the workflows' bundle to ${file}`);
}
