import { randomInt } from 'node:crypto';
import type { RuntimeOptions } from '@temporalio/worker';

/** Below Linux's ephemeral ports. */
const LOWEST_PORT = 10_000;
const HIGHEST_PORT = 20_000;
const MAX_READ_MS = 2_000;

// A process has only one runtime of the SDK.
let port: number | undefined;

/**
 * The SDK serves its own metrics over HTTP. It does so on loopback, only for this process, which includes
 * them in its own. With the SDK's metrics buffer instead, every single count would go through JavaScript.
 */
export const sdkMetrics: NonNullable<RuntimeOptions['telemetryOptions']>['metrics'] = {
  attachServiceName: false,
  prometheus: {
    // Read again each time the SDK starts its runtime, so that it does not insist on a port that is taken.
    get bindAddress() {
      port = randomInt(LOWEST_PORT, HIGHEST_PORT);
      return `127.0.0.1:${port}`;
    },
    countersTotalSuffix: true,
    unitSuffix: true,
    useSecondsForDurations: true,
  },
};

/** The SDK's metrics as text for Prometheus; empty if no worker of this process has started yet. */
export async function readSdkMetrics(): Promise<string> {
  if (port === undefined) return '';
  const signal = AbortSignal.timeout(MAX_READ_MS);
  const response = await fetch(`http://127.0.0.1:${port}/metrics`, { signal }).catch((error: unknown) => {
    // The runtime ended with its last worker, or is busy.
    if (error instanceof TypeError || error instanceof DOMException) return undefined;
    throw error;
  });
  return (await response?.text()) ?? '';
}
