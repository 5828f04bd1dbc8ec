import { existsSync, readFileSync } from 'node:fs';
import { startFakeIncrease } from '../increase/fake-increase.ts';
import { startFakeLithic } from '../lithic/fake-lithic.ts';
import { writePrivateFile } from '../process/files.ts';

interface LocalIssuerOptions {
  /** Where its books are kept across restarts. */
  file: string;
  port: number;
  /** Where it posts its events. */
  apiOrigin: string;
}

interface LocalIssuer {
  url: string;
  /** The service's configuration for this issuer. */
  environment: Record<string, string>;
  stop(): Promise<void>;
}

/** What `npm start -- --network NAME` can start: a fake issuer on loopback. */
export const LOCAL_ISSUERS = { increase: startIncrease, lithic: startLithic };
export type LocalIssuerName = keyof typeof LOCAL_ISSUERS;

async function startIncrease({ file, port, apiOrigin }: LocalIssuerOptions): Promise<LocalIssuer> {
  const secret = 'secret-of-the-local-increase';
  const fake = await startFakeIncrease({
    port,
    books: readBooks(file),
    onChange: (books) => writePrivateFile(file, JSON.stringify(books)),
  });
  fake.bank.books.subscriptions = [];
  fake.subscribe(`${apiOrigin}/network/increase/events`, secret);
  return {
    url: fake.url,
    environment: {
      CARD_NETWORK: 'increase',
      INCREASE_API_KEY: fake.apiKey,
      INCREASE_WEBHOOK_SECRET: secret,
      INCREASE_BASE_URL: fake.url,
      INCREASE_FUNDING_ACCOUNT_ID: fake.fundingAccountId,
    },
    stop: () => fake.stop(),
  };
}

async function startLithic({ file, port, apiOrigin }: LocalIssuerOptions): Promise<LocalIssuer> {
  const apiKey = 'key-of-the-local-lithic';
  const secretNamed = (name: string) => `whsec_${Buffer.from(name.padEnd(24)).toString('base64')}`;
  const [webhookSecret, asaSecret] = [secretNamed('local events'), secretNamed('local requests')];
  const fake = await startFakeLithic({
    apiKey,
    port,
    receiverUrl: apiOrigin,
    webhookSecrets: [webhookSecret],
    asaSecrets: [asaSecret],
    books: readBooks(file),
    onChange: (books) => writePrivateFile(file, JSON.stringify(books)),
  });
  return {
    url: fake.url,
    environment: {
      CARD_NETWORK: 'lithic',
      LITHIC_API_KEY: apiKey,
      LITHIC_WEBHOOK_SECRET: webhookSecret,
      LITHIC_ASA_SECRET: asaSecret,
      LITHIC_BASE_URL: fake.url,
    },
    stop: () => fake.stop(),
  };
}

/** What an earlier start has written; undefined the first time. */
function readBooks(file: string) {
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined;
}
