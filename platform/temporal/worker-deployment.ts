import type { Client } from '@temporalio/client';
import type { VersioningBehavior, WorkerDeploymentVersion } from '@temporalio/common';
import type { WorkerOptions } from '@temporalio/worker';
import type { Logger } from 'pino';
import { type Repetition, repeat } from '../process/repeat.ts';

const CALL_TIMEOUT_MS = 5_000;
const LOOK_AGAIN_MS = 2_000;
const GRPC_NOT_FOUND = 5;

/**
 * A worker's options for Temporal's worker versioning (docs/decisions/worker-versions.md).
 * @param version null if it is unversioned: its workflows then continue on whatever code their next worker
 * has
 * @param behavior `PINNED`: a workflow stays on the version that ran its first task; `AUTO_UPGRADE`: it moves
 * to the current one
 */
export function deploymentOptions(
  version: WorkerDeploymentVersion | null,
  behavior: VersioningBehavior,
): Pick<WorkerOptions, 'workerDeploymentOptions'> {
  if (version === null) return {};
  return {
    workerDeploymentOptions: { version, useWorkerVersioning: true, defaultVersioningBehavior: behavior },
  };
}

/**
 * Whether worker processes of this version have polled, so that somebody continues the workflows started on
 * it.
 * @throws ServiceError if Temporal can't be reached
 */
export async function hasWorkers(client: Client, version: WorkerDeploymentVersion): Promise<boolean> {
  try {
    await client.withDeadline(Date.now() + CALL_TIMEOUT_MS, () =>
      client.workflowService.describeWorkerDeploymentVersion({
        namespace: client.options.namespace,
        deploymentVersion: version,
      }),
    );
    return true;
  } catch (error) {
    if ((error as { code?: unknown }).code === GRPC_NOT_FOUND) return false;
    throw error;
  }
}

/**
 * Makes this version the deployment's current one if there is none, so that a new installation works without
 * an extra step. After that, only operators change it.
 */
export function becomeCurrentIfFirst(
  client: Client,
  version: WorkerDeploymentVersion,
  logger: Logger,
): Repetition {
  const { deploymentName, buildId } = version;
  const { namespace, identity } = client.options;
  let isSettled = false;
  return repeat('making the first version of a deployment current', LOOK_AGAIN_MS, logger, async () => {
    // A version exists once its first worker has polled.
    if (isSettled || !(await hasWorkers(client, version))) return;
    await client.withDeadline(Date.now() + CALL_TIMEOUT_MS, async () => {
      const { workerDeploymentInfo, conflictToken } = await client.workflowService.describeWorkerDeployment({
        namespace,
        deploymentName,
      });
      if (workerDeploymentInfo?.routingConfig?.currentDeploymentVersion) return;
      // With the token, anybody else who has set a version in the meantime wins.
      await client.workflowService.setWorkerDeploymentCurrentVersion({
        namespace,
        deploymentName,
        buildId,
        conflictToken,
        identity,
      });
      logger.info({ deploymentName, buildId }, 'made this version current, because the deployment had none');
    });
    isSettled = true;
  });
}
