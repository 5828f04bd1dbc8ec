/**
 * Task queues (WORKER_QUEUES in docs/operating.md). A prefix keeps several installations in one namespace
 * apart.
 */
export function cardsTaskQueue(prefix: string): string {
  return `${prefix}cards`;
}

/** A separate queue, so that slow receivers never delay a card. */
export function webhooksTaskQueue(prefix: string): string {
  return `${prefix}webhooks`;
}

/** A separate queue, so that a scan that is catching up never delays a card. */
export function depositsTaskQueue(prefix: string): string {
  return `${prefix}deposits`;
}

/**
 * What a worker can serve. Each of these is a task queue, together with the background work that belongs to
 * it.
 */
export const WORKER_QUEUES = ['cards', 'webhooks', 'deposits'] as const;

export type WorkerQueue = (typeof WORKER_QUEUES)[number];

/** The name of a task queue in an installation with this prefix. */
export const prefixedTaskQueue = (prefix: string, queue: WorkerQueue): string => `${prefix}${queue}`;
