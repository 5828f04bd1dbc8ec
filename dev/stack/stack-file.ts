import type { DemoPartner } from '../demo-partner.ts';
import { writePrivateFile } from '../process/write-private-file.ts';

/** What other programs learn of a running stack (operations.md, "Commands"). */
export interface StackFile {
  databaseUrl: string;
  temporalAddress: string;
  temporalNamespace: string;
  /** Ends in `/v1`. */
  apiUrl: string;
  temporalUiUrl: string | null;
  demo: DemoPartner;
}

export function writeStackFile(file: string, content: StackFile): void {
  writePrivateFile(file, `${JSON.stringify(content, null, 2)}\n`);
}
