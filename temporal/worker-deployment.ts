import type { Client } from '@temporalio/client';
import type { VersioningBehavior, WorkerDeploymentVersion } from '@temporalio/common';
import type { WorkerOptions } from '@temporalio/worker';
import type { Logger } from 'pino';
import { type Repetition, repeat } from '../process/repeat.ts';

const CALL_TIMEOUT_MS = 5_000;
const LOOK_AGAIN_MS = 2_000;
const GRPC_NOT_FOUND = 5;

/**
 * How a worker takes part in Temporal's worker versioning (docs/decisions/worker-versions.md).
 * @param version null: it doesn't, and its workflows go on with whatever code their next worker has
 * @param behavior `PINNED`: a workflow ends on the version that ran its first task; `AUTO_UPGRADE`: it goes on with the
 * current one
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
 * Whether worker processes of this version have polled: work that is started on it has somebody to go on with it.
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
 * Makes this version the deployment's current one if it has none, so that a new installation works without another step.
 * From then on only operators change it.
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
    // A version comes into being with its first poll.
    if (isSettled || !(await hasWorkers(client, version))) return;
    await client.withDeadline(Date.now() + CALL_TIMEOUT_MS, async () => {
      const { workerDeploymentInfo, conflictToken } = await client.workflowService.describeWorkerDeployment({
        ...{ namespace, deploymentName },
      });
      if (workerDeploymentInfo?.routingConfig?.currentDeploymentVersion) return;
      // The token: whoever else has set a version meanwhile wins.
      await client.workflowService.setWorkerDeploymentCurrentVersion({
        ...{ namespace, deploymentName, buildId, conflictToken, identity },
      });
      logger.info({ deploymentName, buildId }, 'the deployment had no current version: this one is it');
    });
    isSettled = true;
  });
}
