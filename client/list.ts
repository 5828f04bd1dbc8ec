import type { ApiResponse } from './http.ts';

/** One page, newest first. */
export interface Page<T> {
  object: 'list';
  data: T[];
  /** Whether there are more items after this page. */
  has_more: boolean;
  /** Pass it as `starting_after` to get the next page; null after the last one. */
  next_cursor: string | null;
}

/**
 * `await` it for one page, or iterate over all items of all pages with `for await`. Requests are sent as they
 * are needed: none before you start, and none after a `break`.
 */
export class List<T> implements Promise<ApiResponse<Page<T>>>, AsyncIterable<T> {
  readonly #fetchPage: (startingAfter?: string) => Promise<ApiResponse<Page<T>>>;
  #awaited: Promise<ApiResponse<Page<T>>> | undefined;
  readonly [Symbol.toStringTag] = 'List';

  /** @param fetchPage called without a cursor for the first page */
  constructor(fetchPage: (startingAfter?: string) => Promise<ApiResponse<Page<T>>>) {
    this.#fetchPage = fetchPage;
  }

  /** The first page, requested once however often it is awaited. */
  #page(): Promise<ApiResponse<Page<T>>> {
    this.#awaited ??= this.#fetchPage();
    return this.#awaited;
  }

  // biome-ignore lint/suspicious/noThenProperty: a list can be awaited, as in other clients.
  then<A = ApiResponse<Page<T>>, B = never>(
    onPage?: ((page: ApiResponse<Page<T>>) => A | PromiseLike<A>) | null,
    onError?: ((error: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#page().then(onPage, onError);
  }

  catch<B = never>(
    onError?: ((error: unknown) => B | PromiseLike<B>) | null,
  ): Promise<ApiResponse<Page<T>> | B> {
    return this.#page().catch(onError);
  }

  finally(onEnd?: (() => void) | null): Promise<ApiResponse<Page<T>>> {
    return this.#page().finally(onEnd);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void> {
    let page = await this.#fetchPage();
    for (;;) {
      yield* page.data;
      if (page.next_cursor === null) return;
      page = await this.#fetchPage(page.next_cursor);
    }
  }
}
