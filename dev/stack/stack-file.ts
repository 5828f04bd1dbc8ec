import { z } from 'zod';
import { DemoPartner } from '../demo-partner.ts';
import { readJsonFile, writePrivateFile } from '../process/files.ts';
import type { DataFolder } from './data-folder.ts';

/** What other programs read about a running stack (docs/local-stack.md, "What it starts"). */
const StackFile = z.object({
  /** The login of the API. */
  databaseUrl: z.string(),
  /** The login of the worker. */
  workerDatabaseUrl: z.string(),
  /** The login that migrates. */
  ownerDatabaseUrl: z.string(),
  /** The login of the operator's command line. */
  operatorDatabaseUrl: z.string(),
  temporalAddress: z.string(),
  temporalNamespace: z.string(),
  /** Ends in `/v1`. */
  apiUrl: z.string(),
  temporalUiUrl: z.string().nullable(),
  /**
   * Where the UI gets payloads decrypted; `temporal --codec-endpoint` takes it too. Missing if they aren't
   * encrypted.
   */
  codecEndpoint: z.string().optional(),
  /** Where the worker serves /healthz and /metrics. */
  workerUrl: z.string(),
  /** The fake TRON node; only with `--with-tron`. */
  tronUrl: z.string().optional(),
  /** The fake issuer; only with `--network`. */
  issuerUrl: z.string().optional(),
  /** The variables with which the service reaches it. */
  issuerEnvironment: z.record(z.string(), z.string()).optional(),
  demo: DemoPartner,
});

export type StackFile = z.infer<typeof StackFile>;

export function writeStackFile(file: string, content: StackFile): void {
  writePrivateFile(file, `${JSON.stringify(content, null, 2)}\n`);
}

/** How to reach the local stack and its demo partner. @throws Error if no stack has ever become ready in this folder */
export function readLocalStack({ path, stack }: DataFolder): Pick<StackFile, 'apiUrl' | 'demo'> {
  const known = readJsonFile(stack, StackFile.pick({ apiUrl: true, demo: true }));
  if (known !== undefined) return known;
  throw new Error(
    `no local stack has run in ${path}: start one with npm start, or set DATA_DIR as you did there`,
  );
}

/** What the previous stack wrote; undefined if none ever became ready. */
export function readStackFile(file: string): Pick<StackFile, 'demo' | 'tronUrl'> | undefined {
  return readJsonFile(file, StackFile.pick({ demo: true, tronUrl: true }));
}
