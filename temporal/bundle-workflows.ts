import { fileURLToPath } from 'node:url';
import { parentPort, Worker as Thread, workerData } from 'node:worker_threads';
import { bundleWorkflowCode, type Logger, type WorkflowBundleWithSourceMap } from '@temporalio/worker';

const IN_THREAD = 'bundle the workflows';

/** The workflows' code for the sandbox; it takes about a second. */
export function bundleWorkflows(logger: Logger): Promise<WorkflowBundleWithSourceMap> {
  const pathOf = (file: string) => fileURLToPath(new URL(`../workflows/${file}`, import.meta.url));
  return bundleWorkflowCode({
    workflowsPath: pathOf('index.ts'),
    workflowInterceptorModules: [pathOf('account-header.ts')],
    logger,
  });
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

if (workerData === IN_THREAD) {
  parentPort?.postMessage(
    await bundleWorkflows({ log() {}, trace() {}, debug() {}, info() {}, warn() {}, error() {} }),
  );
}
