import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode, type WorkflowBundleWithSourceMap } from '@temporalio/worker';
import { BUNDLED } from '../../../platform/temporal/plugin.ts';

/** The workflows of `workflows.ts`, beside this file, as a worker gets them. */
export function bundleNextRelease(): Promise<WorkflowBundleWithSourceMap> {
  const workflowsPath = fileURLToPath(new URL('./workflows.ts', import.meta.url));
  return bundleWorkflowCode({ ...BUNDLED, workflowsPath, logger: SILENT });
}

const SILENT = { log() {}, trace() {}, debug() {}, info() {}, warn() {}, error() {} };
