import { z } from 'zod';
import { DemoPartner } from '../demo-partner.ts';
import { readJsonFile, writePrivateFile } from '../process/files.ts';

/** What other programs learn of a running stack (operations.md, "Commands"). */
const StackFile = z.object({
  /** API's and worker's. */
  databaseUrl: z.string(),
  /** The one that migrates. */
  ownerDatabaseUrl: z.string(),
  /** The operator's command line's. */
  operatorDatabaseUrl: z.string(),
  temporalAddress: z.string(),
  temporalNamespace: z.string(),
  /** Ends in `/v1`. */
  apiUrl: z.string(),
  temporalUiUrl: z.string().nullable(),
  /** Where the UI has payloads decrypted; `temporal --codec-endpoint` takes it too. Left out: they aren't encrypted. */
  codecEndpoint: z.string().optional(),
  /** Where the worker serves /healthz and /metrics. */
  workerUrl: z.string(),
  /** Of the fake TRON node; only with `--with-tron`. */
  tronUrl: z.string().optional(),
  demo: DemoPartner,
});

export type StackFile = z.infer<typeof StackFile>;

export function writeStackFile(file: string, content: StackFile): void {
  writePrivateFile(file, `${JSON.stringify(content, null, 2)}\n`);
}

/** What the stack before told of; undefined where none ever became ready. */
export function readStackFile(file: string): Pick<StackFile, 'demo' | 'tronUrl'> | undefined {
  return readJsonFile(file, StackFile.pick({ demo: true, tronUrl: true }));
}
