import { readSettings } from './stack/settings.ts';
import { type StartedStack, startStack } from './stack/start-stack.ts';

/** `npm start`: the whole service on one machine (operations.md, "Commands"). */
const report = (line: string) => console.log(line);
const disposables = new AsyncDisposableStack();
let stopping = false;

// Whoever reads our output may leave (`npm start | head`); the stack goes on.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
}
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    // A second signal: whatever still runs is killed as this process exits.
    if (stopping) process.exit(1);
    void stop(0, 'stopping; once more to hurry');
  });
}

try {
  const stack = await startStack({ settings: readSettings(process.env), report, disposables });
  report(readyLine(stack));
} catch (error) {
  if (!stopping) await stop(1, error instanceof Error ? error.message : String(error));
}

async function stop(exitCode: number, reason: string): Promise<void> {
  stopping = true;
  report(reason);
  try {
    await disposables.disposeAsync();
    if (exitCode === 0) report('stopped');
  } catch (error) {
    console.error(error);
    process.exit(1);
  }
  process.exit(exitCode);
}

function readyLine(stack: StartedStack): string {
  const origin = stack.apiUrl.replace(/\/v1$/, '');
  const parts = [`API ${stack.apiUrl}`, `reference ${origin}/docs`];
  if (stack.temporalUiUrl !== null) parts.push(`Temporal UI ${stack.temporalUiUrl}`);
  if (stack.demoIsNew) {
    const { partnerId, testKey, liveKey } = stack.demo;
    parts.push(`demo partner ${partnerId}`, `test key ${testKey}`, `live key ${liveKey}`);
  }
  return `ready: ${parts.join(' | ')}`;
}
