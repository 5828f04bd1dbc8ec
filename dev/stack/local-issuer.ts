export interface LocalIssuer {
  url: string;
  /** The service's configuration for this issuer. */
  environment: NodeJS.ProcessEnv;
  stop(): Promise<void>;
}
