import { existsSync, readFileSync } from 'node:fs';
import { writePrivateFile } from '../process/files.ts';
import type { LocalIssuer } from '../stack/local-issuer.ts';
import { startFakeLithic } from './fake-lithic.ts';

const API_KEY = 'key-of-the-local-lithic';
const secretOf = (name: string): string => `whsec_${Buffer.from(name.padEnd(24)).toString('base64')}`;
const WEBHOOK_SECRET = secretOf('local events');
const ASA_SECRET = secretOf('local requests');

/**
 * The fake Lithic of the local stack, on loopback, with our address enrolled.
 * @param options.file where its cards and transactions are kept across restarts
 * @param options.apiOrigin where it posts
 */
export async function startLocalLithic({
  file,
  port,
  apiOrigin,
}: {
  file: string;
  port: number;
  apiOrigin: string;
}): Promise<LocalIssuer> {
  const fake = await startFakeLithic({
    apiKey: API_KEY,
    port,
    receiverUrl: apiOrigin,
    webhookSecrets: [WEBHOOK_SECRET],
    asaSecrets: [ASA_SECRET],
    ...(existsSync(file) && { books: JSON.parse(readFileSync(file, 'utf8')) }),
    onChange: (books) => writePrivateFile(file, JSON.stringify(books)),
  });
  return {
    url: fake.url,
    environment: {
      CARD_NETWORK: 'lithic',
      LITHIC_API_KEY: API_KEY,
      LITHIC_WEBHOOK_SECRET: WEBHOOK_SECRET,
      LITHIC_ASA_SECRET: ASA_SECRET,
      LITHIC_BASE_URL: fake.url,
    },
    stop: () => fake.stop(),
  };
}
