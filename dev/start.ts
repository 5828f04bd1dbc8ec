import { Command, Option } from 'commander';
import { describeFailure } from './process/describe-failure.ts';
import { LOCAL_ISSUERS, type LocalIssuerName } from './stack/local-issuers.ts';
import { readyBlock } from './stack/ready-block.ts';
import { readSettings } from './stack/settings.ts';
import { startStack } from './stack/start-stack.ts';
import { makeWorkbenchLinks } from './workbench-links.ts';

/** `npm start`: the whole service on one machine (docs/local-stack.md, "What it starts"). */
const report = (line: string) => console.log(line);
const disposables = new AsyncDisposableStack();
let stoppingSince: number | undefined;
/** docs/local-stack.md promises 15 s. */
const MAX_STOP_MS = 14_000;

// The reader of our output may go away (`npm start | head`); the stack keeps running.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
}
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    if (stoppingSince === undefined) void stop(0, 'stopping; press Ctrl-C again to stop at once');
    // On a second signal, this process exits and what still runs is killed. One Ctrl-C arrives twice, though:
    // from the terminal, and passed on by npm.
    else if (Date.now() - stoppingSince > 500) process.exit(1);
  });
}

try {
  const { withTron, network } = new Command('npm start --')
    .description('Starts the whole service on this machine.')
    .option('--with-tron', 'also start a fake TRON node, so that deposits can be tried out')
    .addOption(
      new Option('--network <name>', 'also start a fake of this issuer, which then has live mode').choices(
        Object.keys(LOCAL_ISSUERS),
      ),
    )
    .parse()
    .opts<{ withTron?: true; network?: LocalIssuerName }>();
  const settings = readSettings(process.env, { withTron, network });
  const stack = await startStack({ settings, withTron, network, report, disposables });
  // Somebody may have revoked the demo partner's keys: the rest works all the same.
  const links = await makeWorkbenchLinks(stack.apiUrl, stack.demo).catch((error) => {
    report(describeFailure(error));
    return null;
  });
  report(readyBlock({ stack, links, dataDir: settings.DATA_DIR }));
} catch (error) {
  if (stoppingSince === undefined) await stop(1, describeFailure(error));
}

async function stop(exitCode: number, reason: string): Promise<void> {
  stoppingSince = Date.now();
  report(reason);
  setTimeout(() => {
    report(`not everything has ended after ${MAX_STOP_MS / 1000} s; killing the rest`);
    process.exit(1);
  }, MAX_STOP_MS);
  try {
    await disposables.disposeAsync();
    if (exitCode === 0) report('stopped');
  } catch (error) {
    console.error(error);
    process.exit(1);
  }
  process.exit(exitCode);
}
