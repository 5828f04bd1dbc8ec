import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode, type Logger, type WorkflowBundleWithSourceMap } from '@temporalio/worker';

/** The workflows' code for the sandbox; it takes about a second. */
export function bundleWorkflows(logger: Logger): Promise<WorkflowBundleWithSourceMap> {
  const pathOf = (file: string) => fileURLToPath(new URL(`../workflows/${file}`, import.meta.url));
  return bundleWorkflowCode({
    workflowsPath: pathOf('index.ts'),
    workflowInterceptorModules: [pathOf('account-header.ts')],
    logger,
  });
}
