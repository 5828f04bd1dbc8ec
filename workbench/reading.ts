import {
  keepPreviousData,
  useInfiniteQuery,
  useMutation,
  useQuery,
  useQueryClient,
} from '@tanstack/react-query';
import { useRef } from 'react';
import type { Page } from '../client/list.ts';
import { keepsKey } from './keeps-key.ts';

/** How often what is on the screen is read again while the tab is visible. */
const REFRESH_MS = 5_000;
const PAGE_SIZE = 50;

/** One object, read again while it is visible. */
export function useOne<T>(
  key: readonly unknown[],
  read: (options: { signal: AbortSignal }) => Promise<T>,
  { isAllowed = true, refreshMs = REFRESH_MS }: { isAllowed?: boolean; refreshMs?: number } = {},
) {
  return useQuery({
    queryKey: key,
    queryFn: ({ signal }) => read({ signal }),
    enabled: isAllowed,
    refetchInterval: refreshMs,
  });
}

/** The query of one page of a list. */
export interface PageQuery {
  limit: number;
  starting_after?: string;
}

/**
 * A list that loads more by cursor. Only its first page is read again by itself: with more of them on the
 * screen, the lines would move under the reader's eyes.
 */
export function useList<T>(
  key: readonly unknown[],
  read: (query: PageQuery, options: { signal: AbortSignal }) => PromiseLike<Page<T>>,
  { isAllowed = true, pageSize = PAGE_SIZE }: { isAllowed?: boolean; pageSize?: number } = {},
) {
  const list = useInfiniteQuery({
    queryKey: key,
    queryFn: ({ pageParam, signal }) =>
      Promise.resolve(
        read({ limit: pageSize, ...(pageParam !== null && { starting_after: pageParam }) }, { signal }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: ({ next_cursor }) => next_cursor,
    enabled: isAllowed,
    placeholderData: keepPreviousData,
    refetchOnWindowFocus: ({ state }) => (state.data?.pages.length ?? 0) <= 1,
    refetchInterval: ({ state }) => ((state.data?.pages.length ?? 0) <= 1 ? REFRESH_MS : false),
  });
  return { ...list, rows: list.data?.pages.flatMap(({ data }) => data) };
}

/** @returns the first `max` of a list, from as many pages as they take */
export async function readFirst<T>(list: AsyncIterable<T>, max: number): Promise<T[]> {
  const rows: T[] = [];
  for await (const row of list) {
    rows.push(row);
    if (rows.length === max) break;
  }
  return rows;
}

export type ListReading<T> = ReturnType<typeof useList<T>>;

/** Something that a person does. Input whose outcome is not known has the same Idempotency-Key again. */
export function useAction<Input, Output>(
  act: (input: Input, options: { idempotencyKey: string }) => Promise<Output>,
  onDone: (output: Output) => void = () => {},
) {
  const queries = useQueryClient();
  const { current: keys } = useRef(new Map<string, string>());
  const { data, error, isPending, mutate } = useMutation({
    mutationFn: (input: Input) => {
      const text = JSON.stringify(input);
      const idempotencyKey = keys.get(text) ?? crypto.randomUUID();
      keys.set(text, idempotencyKey);
      return act(input, { idempotencyKey });
    },
    onError: (error, input) => {
      if (!keepsKey(error)) keys.delete(JSON.stringify(input));
    },
    onSuccess: (output, input) => {
      keys.delete(JSON.stringify(input));
      void queries.invalidateQueries();
      onDone(output);
    },
  });
  return { data, error, isPending, mutate: mutate as (input: Input) => void };
}

export interface Action<Input> {
  error: Error | null;
  isPending: boolean;
  mutate: (input: Input) => void;
}
