import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode, type WorkflowBundleWithSourceMap } from '@temporalio/worker';

/** The workflows of `workflows.ts`, beside this file, as a worker gets them. */
export function bundleNextRelease(): Promise<WorkflowBundleWithSourceMap> {
  const pathOf = (file: string) => fileURLToPath(new URL(`../../../${file}`, import.meta.url));
  return bundleWorkflowCode({
    workflowsPath: pathOf('test/support/next-release/workflows.ts'),
    workflowInterceptorModules: [pathOf('workflows/account-header.ts')],
    logger: SILENT,
  });
}

const SILENT = { log() {}, trace() {}, debug() {}, info() {}, warn() {}, error() {} };
