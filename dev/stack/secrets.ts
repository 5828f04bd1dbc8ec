import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { readJsonFile } from '../process/read-json-file.ts';
import { writePrivateFile } from '../process/write-private-file.ts';

const Secrets = z.object({
  postgresPassword: z.string(),
  /** In the form of ENCRYPTION_KEYS. */
  encryptionKeys: z.string(),
});

export type Secrets = z.infer<typeof Secrets>;

/** What is generated once for a data folder and must not be lost while its data is kept. */
export function loadSecrets(file: string): Secrets {
  const known = readJsonFile(file, Secrets);
  if (known !== undefined) return known;
  const secrets = {
    postgresPassword: randomBytes(24).toString('base64url'),
    encryptionKeys: `local:${randomBytes(32).toString('base64')}`,
  };
  writePrivateFile(file, JSON.stringify(secrets, null, 2));
  return secrets;
}
