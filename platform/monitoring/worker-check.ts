import type { WorkerQueue } from '../config/task-queues.ts';

/** What to check if workers have not done something: that one is running, or, if one is, why it has not. */
export interface WorkerCheck {
  /** The task queue of the workers that should have done it; null if any worker should have. */
  queue: WorkerQueue | null;
  absent: string;
  present: string;
}

export const CHECK_WORKER = { queue: 'cards', absent: 'check that a worker is running' } as const;
export const SEE_LOG: WorkerCheck = {
  ...CHECK_WORKER,
  present: 'a worker is running, so see its log for the reason',
};

/** How many workers poll a queue, or any queue; null if Temporal can't say. */
export type CountWorkers = (queue: WorkerQueue | null) => Promise<number | null>;

/** What to check, by whether a worker is running. */
export async function checkHint(worker: WorkerCheck, countWorkers: CountWorkers): Promise<string> {
  const count = await countWorkers(worker.queue);
  if (count === null) return 'Temporal does not say whether a worker is running';
  return count === 0 ? worker.absent : worker.present;
}
