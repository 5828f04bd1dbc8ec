/** Task queues (architecture.md, "Runtime"); a prefix keeps several installations on one namespace apart. */
export function cardsTaskQueue(prefix: string): string {
  return `${prefix}cards`;
}
