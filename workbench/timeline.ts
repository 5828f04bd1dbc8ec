/** What was read so far of one list, newest first. */
export interface TimelineSource<T> {
  rows: readonly T[] | undefined;
  hasNextPage: boolean;
}

/**
 * Lists of one card as one, newest first. It ends where one of the lists was not read on yet, because older
 * rows of that one may belong in between.
 */
export function mergeTimeline<T extends { id: string; created: string }>(
  sources: readonly TimelineSource<T>[],
): { rows: T[]; hasOlder: boolean; end: string } {
  const end = sources
    .filter(({ hasNextPage }) => hasNextPage)
    .map(({ rows }) => rows?.at(-1)?.created ?? '')
    .reduce((newest, created) => (created > newest ? created : newest), '');
  const rows = sources
    .flatMap(({ rows }) => rows ?? [])
    .filter(({ created }) => created >= end)
    .sort((a, b) => b.created.localeCompare(a.created) || b.id.localeCompare(a.id));
  return { rows, hasOlder: sources.some(({ hasNextPage }) => hasNextPage), end };
}
