import { describeFailure } from './process/describe-failure.ts';
import { dataFolder } from './stack/data-folder.ts';
import { readLocalStack } from './stack/stack-file.ts';

/**
 * `npm run env`: prints the local stack's address and keys as a shell's variables (docs/local-stack.md, "A first
 * card"). No value needs quotes.
 */
try {
  const { apiUrl, demo } = readLocalStack(dataFolder());
  console.log(`API=${apiUrl}\nKEY=${demo.testKey}\nLIVE=${demo.liveKey}\nPARTNER=${demo.partnerId}`);
} catch (error) {
  console.error(describeFailure(error));
  process.exitCode = 1;
}
