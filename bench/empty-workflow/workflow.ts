import {
  allHandlersFinished,
  condition,
  defineUpdate,
  proxyLocalActivities,
  setHandler,
} from '@temporalio/workflow';

export const done = defineUpdate<void>('done');

/** A workflow that does nothing, started with update-with-start. */
export async function emptyWorkflow(): Promise<void> {
  setHandler(done, () => {});
  await condition(allHandlersFinished);
}

const local = proxyLocalActivities<{ askNetwork(id: string): Promise<void> }>({ startToCloseTimeout: '10s' });

/** The floor of a live issuance: a workflow that only asks the network. */
export async function askingWorkflow(id: string): Promise<void> {
  await local.askNetwork(id);
}
