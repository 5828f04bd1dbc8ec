export interface RunningTemporal {
  /** `host:port` of the frontend. */
  address: string;
  namespace: string;
  /** Null where there is no UI, or where we don't know of one. */
  uiUrl: string | null;
  /** Which of the sources it came from, in words. */
  source: string;
  /** Resolves with how the server ended, whoever ended it. Of a server that was there before us only {@link stop} is known. */
  exited: Promise<string>;
  stop(): Promise<void>;
}
