import { describeFailure } from './process/describe-failure.ts';
import { dataFolder } from './stack/data-folder.ts';
import { readLocalStack } from './stack/stack-file.ts';

/**
 * `npm run listen`: the client's command `listen`, with the local stack's address and test key if no key is
 * set.
 */
try {
  const needsKey = !process.argv.some((argument) => argument === '--help' || argument === '-h');
  if (needsKey && !process.env.CARD_ISSUING_API_KEY) {
    const { apiUrl, demo } = readLocalStack(dataFolder());
    process.env.CARD_ISSUING_API_KEY = demo.testKey;
    process.env.CARD_ISSUING_BASE_URL = apiUrl;
  }
  process.argv.splice(2, 0, 'listen');
  await import('../client/cli.ts');
} catch (error) {
  console.error(describeFailure(error));
  process.exitCode = 1;
}
