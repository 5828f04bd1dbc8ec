import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { readJsonFile } from '../process/read-json-file.ts';
import { writePrivateFile } from '../process/write-private-file.ts';

const Login = z.object({ user: z.string(), password: z.string() });

const Secrets = z.object({
  postgresPassword: z.string(),
  /** In the form of ENCRYPTION_KEYS. */
  encryptionKeys: z.string(),
  /** What API and worker, and the operator's command line, log in as. */
  logins: z.object({ service: Login, operator: Login }),
});

export type Secrets = z.infer<typeof Secrets>;

/** What is generated once for a data folder and must not be lost while its data is kept. */
export function loadSecrets(file: string): Secrets {
  // Of an older folder some are missing.
  const known = readJsonFile(file, Secrets.partial());
  const secrets = {
    postgresPassword: randomBytes(24).toString('base64url'),
    encryptionKeys: `local:${randomBytes(32).toString('base64')}`,
    logins: { service: newLogin('service'), operator: newLogin('operator') },
    ...known,
  };
  writePrivateFile(file, JSON.stringify(secrets, null, 2));
  return secrets;
}

/** Of a name that no other data folder uses on the same server. */
function newLogin(what: string): z.infer<typeof Login> {
  const user = `card_issuing_${what}_${randomBytes(4).toString('hex')}`;
  return { user, password: randomBytes(24).toString('base64url') };
}
