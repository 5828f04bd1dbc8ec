import { describeFailure } from './process/describe-failure.ts';
import { dataFolder } from './stack/data-folder.ts';
import { readShellVariables } from './stack/stack-file.ts';

/**
 * `npm run env`: prints the local stack's address and keys as a shell's variables (docs/local-stack.md, "A first
 * card").
 */
try {
  process.stdout.write(readShellVariables(dataFolder(process.env.DATA_DIR || '.data')));
} catch (error) {
  console.error(describeFailure(error));
  process.exitCode = 1;
}
