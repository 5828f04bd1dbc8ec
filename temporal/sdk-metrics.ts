import { randomInt } from 'node:crypto';
import type { RuntimeOptions } from '@temporalio/worker';

/** Below the ports that Linux gives to outgoing connections. */
const LOWEST_PORT = 10_000;
const HIGHEST_PORT = 20_000;
const LONGEST_READ_MS = 2_000;

// There is one runtime of the SDK in a process.
let port: number | undefined;

/**
 * The SDK counts in its own code and serves what it counted over HTTP itself. It does so on loopback, for this process
 * alone, which shows it with its own metrics. With the SDK's buffer every single count would go through JavaScript.
 */
export const sdkMetrics: NonNullable<RuntimeOptions['telemetryOptions']>['metrics'] = {
  attachServiceName: false,
  prometheus: {
    // Read anew each time that the SDK starts its runtime, so that it does not insist on a port that is taken.
    get bindAddress() {
      port = randomInt(LOWEST_PORT, HIGHEST_PORT);
      return `127.0.0.1:${port}`;
    },
    countersTotalSuffix: true,
    unitSuffix: true,
    useSecondsForDurations: true,
  },
};

/** What the SDK has counted, as text for Prometheus; empty if no worker of this process has started yet. */
export async function readSdkMetrics(): Promise<string> {
  if (port === undefined) return '';
  const signal = AbortSignal.timeout(LONGEST_READ_MS);
  const response = await fetch(`http://127.0.0.1:${port}/metrics`, { signal }).catch((error: unknown) => {
    // The runtime has ended with its last worker, or is busy.
    if (error instanceof TypeError || error instanceof DOMException) return undefined;
    throw error;
  });
  return (await response?.text()) ?? '';
}
