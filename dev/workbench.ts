import { parseEnv } from 'node:util';
import { describeFailure } from './process/describe-failure.ts';
import { dataFolder } from './stack/data-folder.ts';
import { readShellVariables } from './stack/stack-file.ts';
import { makeWorkbenchLinks } from './workbench-links.ts';

/** `npm run workbench`: prints new links to the workbench of the running local stack's demo partner. */
try {
  const stack = parseEnv(readShellVariables(dataFolder(process.env.DATA_DIR || '.data')));
  const { API = '', KEY: testKey = '', LIVE: liveKey = '' } = stack;
  const { test, live } = await makeWorkbenchLinks(API, { testKey, liveKey });
  console.log(`test  ${test}\nlive  ${live}`);
  console.log('Each link opens once, within 5 minutes.');
} catch (error) {
  console.error(describeFailure(error));
  process.exitCode = 1;
}
