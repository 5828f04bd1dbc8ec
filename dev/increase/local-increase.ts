import { existsSync, readFileSync } from 'node:fs';
import { writePrivateFile } from '../process/files.ts';
import type { LocalIssuer } from '../stack/local-issuer.ts';
import { startFakeIncrease } from './fake-increase.ts';

const WEBHOOK_SECRET = 'secret-of-the-local-increase';

/**
 * The fake Increase of the local stack, on loopback.
 * @param file where its books are kept across restarts
 * @param apiOrigin where it posts its events
 */
export async function startLocalIncrease({
  file,
  port,
  apiOrigin,
}: {
  file: string;
  port: number;
  apiOrigin: string;
}): Promise<LocalIssuer> {
  const fake = await startFakeIncrease({
    port,
    ...(existsSync(file) && { books: JSON.parse(readFileSync(file, 'utf8')) }),
    onChange: (books) => writePrivateFile(file, JSON.stringify(books)),
  });
  fake.bank.books.subscriptions = [];
  fake.subscribe(`${apiOrigin}/network/increase/events`, WEBHOOK_SECRET);
  return {
    url: fake.url,
    environment: {
      CARD_NETWORK: 'increase',
      INCREASE_API_KEY: fake.apiKey,
      INCREASE_WEBHOOK_SECRET: WEBHOOK_SECRET,
      INCREASE_BASE_URL: fake.url,
      INCREASE_FUNDING_ACCOUNT_ID: fake.fundingAccountId,
    },
    stop: () => fake.stop(),
  };
}
