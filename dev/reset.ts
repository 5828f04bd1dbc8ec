import { describeFailure } from './process/describe-failure.ts';
import { resetStack } from './stack/reset-stack.ts';
import { readSettings } from './stack/settings.ts';

/** `npm run reset`: forgets the local data (operations.md, "Commands"). */
try {
  await resetStack(readSettings(process.env).DATA_DIR, (line) => console.log(line));
} catch (error) {
  console.error(describeFailure(error));
  process.exitCode = 1;
}
