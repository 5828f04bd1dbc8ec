import { temporalSearch } from '../stack/temporal-search.ts';
import { cachedBuild } from './build-server.ts';
import { cachedCli, cliOnPath, downloadedCli } from './cli.ts';

/** For `.ci/run`: finds or downloads a Temporal server, but builds none. Exits with 1 if Go is needed to build one. */
const search = temporalSearch({}, console.log);
for (const look of [cliOnPath, cachedCli, cachedBuild, downloadedCli]) {
  const found = await look(search);
  if (typeof found !== 'string') {
    console.log(`Temporal: ${found.label}`);
    process.exit(0);
  }
}
process.exit(1);
