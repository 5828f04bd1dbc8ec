import { temporalSearch } from '../stack/temporal-search.ts';
import { downloadedCli } from './download-cli.ts';
import { cachedBuild } from './find-build.ts';
import { cachedCli, cliOnPath } from './find-cli.ts';

/** `.ci/run`: sees to a Temporal server short of building one; where there is none it ends with 1, and Go is needed. */
const search = temporalSearch({}, console.log);
for (const look of [cliOnPath, cachedCli, cachedBuild, downloadedCli]) {
  const found = await look(search);
  if (typeof found !== 'string') {
    console.log(`Temporal: ${found.label}`);
    process.exit(0);
  }
}
process.exit(1);
