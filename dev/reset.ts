import { describeFailure } from './process/describe-failure.ts';
import { resetStack } from './stack/reset-stack.ts';

/** `npm run reset`: forgets the local data (operations.md, "Commands"). */
try {
  await resetStack(process.env.DATA_DIR || '.data', (line) => console.log(line));
} catch (error) {
  console.error(describeFailure(error));
  process.exitCode = 1;
}
