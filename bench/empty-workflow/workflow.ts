import { allHandlersFinished, condition, defineUpdate, setHandler } from '@temporalio/workflow';

export const done = defineUpdate<void>('done');

/** The floor of any issuance: a workflow that does nothing, started with update-with-start. */
export async function emptyWorkflow(): Promise<void> {
  setHandler(done, () => {});
  await condition(allHandlersFinished);
}
