/** What the middleware of one request shares. */
export interface RequestState {
  requestId: string;
  /** What the request's log line says beside method, path and status. */
  logFields: Record<string, string>;
}
