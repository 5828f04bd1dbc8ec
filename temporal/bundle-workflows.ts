import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parentPort, Worker as Thread, workerData } from 'node:worker_threads';
import { bundleWorkflowCode, type Logger, type WorkflowBundleWithSourceMap } from '@temporalio/worker';
import { BUNDLED } from './plugin.ts';

const IN_THREAD = 'bundle the workflows';

/** The workflows' code for the sandbox; it takes about a second. */
export function bundleWorkflows(logger: Logger): Promise<WorkflowBundleWithSourceMap> {
  const workflowsPath = fileURLToPath(new URL('../workflows/index.ts', import.meta.url));
  return bundleWorkflowCode({ ...BUNDLED, workflowsPath, logger });
}

/** {@link bundleWorkflows} for a process that has to answer meanwhile: the bundler would keep it busy all that time. */
export function bundleInThread(): Promise<WorkflowBundleWithSourceMap> {
  return new Promise((resolve, reject) => {
    const thread = new Thread(fileURLToPath(import.meta.url), { workerData: IN_THREAD });
    thread.once('message', resolve);
    thread.once('error', reject);
    thread.once('exit', () => reject(new Error('the bundling of the workflows ended without a bundle')));
  });
}

const SILENT: Logger = { log() {}, trace() {}, debug() {}, info() {}, warn() {}, error() {} };

if (workerData === IN_THREAD) {
  parentPort?.postMessage(await bundleWorkflows(SILENT));
} else if (import.meta.main) {
  // `node temporal/bundle-workflows.ts FILE`, when an image is built: for WORKFLOW_BUNDLE.
  const [file = 'workflow-bundle.js'] = process.argv.slice(2);
  const { code } = await bundleWorkflows(SILENT);
  writeFileSync(file, code);
  console.log(`wrote the workflows' bundle to ${file}`);
}
