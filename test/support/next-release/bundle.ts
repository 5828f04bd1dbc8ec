import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode, type WorkflowBundleWithSourceMap } from '@temporalio/worker';
import { BUNDLED } from '../../../platform/temporal/plugin.ts';

export function bundleNextRelease(): Promise<WorkflowBundleWithSourceMap> {
  const workflowsPath = fileURLToPath(new URL('./workflows.ts', import.meta.url));
  return bundleWorkflowCode({ ...BUNDLED, workflowsPath, logger: SILENT });
}

const SILENT = { log() {}, trace() {}, debug() {}, info() {}, warn() {}, error() {} };
