import { describeFailure } from './process/describe-failure.ts';
import { dataFolder } from './stack/data-folder.ts';
import { readLocalStack } from './stack/stack-file.ts';
import { makeWorkbenchLinks } from './workbench-links.ts';

/** `npm run workbench`: prints new links to the workbench of the running local stack's demo partner. */
try {
  const { apiUrl, demo } = readLocalStack(dataFolder());
  const { test, live } = await makeWorkbenchLinks(apiUrl, demo);
  console.log(`test  ${test}\nlive  ${live}`);
  console.log('Each link opens once, within 5 minutes.');
} catch (error) {
  console.error(describeFailure(error));
  process.exitCode = 1;
}
