/** Task queues (architecture.md, "Runtime"); a prefix keeps several installations on one namespace apart. */
export function cardsTaskQueue(prefix: string): string {
  return `${prefix}cards`;
}

/** Of its own, so that slow receivers never keep a card waiting. */
export function webhooksTaskQueue(prefix: string): string {
  return `${prefix}webhooks`;
}

/** Of its own, so that a scan that catches up never keeps a card waiting. */
export function depositsTaskQueue(prefix: string): string {
  return `${prefix}deposits`;
}

/** What a worker can do: each has a task queue of its own, with what no workflow asks for beside it. */
export const WORKER_QUEUES = ['cards', 'webhooks', 'deposits'] as const;

export type WorkerQueue = (typeof WORKER_QUEUES)[number];
