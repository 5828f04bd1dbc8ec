import type { ApiResponse, HttpClient, IdempotentRequestOptions, Operation, RequestOptions } from './http.ts';
import { List, type Page } from './list.ts';
import { type WaitOptions, waitUntilSettled } from './settled.ts';

/** What the generated classes are made of: the ways to call an operation. */
export abstract class OperationGroup {
  readonly #http: HttpClient;

  constructor(http: HttpClient) {
    this.#http = http;
  }

  protected send<R>(operation: Operation, options?: IdempotentRequestOptions): Promise<ApiResponse<R>> {
    return this.#http.send<R>(operation, options);
  }

  protected async sendForNothing(operation: Operation, options?: RequestOptions): Promise<void> {
    await this.#http.send(operation, options);
  }

  protected pages<T>(operation: Operation, options?: RequestOptions): List<T> {
    return new List<T>((cursor) => {
      const query = { ...operation.query, ...(cursor !== undefined && { starting_after: cursor }) };
      return this.#http.send<Page<T>>({ ...operation, query }, options);
    });
  }

  protected download(operation: Operation, options?: RequestOptions): Promise<ReadableStream<Uint8Array>> {
    return this.#http.download(operation, options);
  }

  protected settled<T extends { status: string }>(
    id: string,
    pendingStatus: T['status'],
    read: (options: RequestOptions) => Promise<T>,
    options: WaitOptions,
  ): Promise<T> {
    return waitUntilSettled({ id, pendingStatus, read, pause: this.#http.pause }, options);
  }
}
