/**
 * Runs `compute` at most once per interval, and never concurrently; other callers get the latest result.
 * @param now milliseconds of a monotonic clock
 */
export function atMostOften<T>(
  intervalMs: number,
  compute: () => Promise<T>,
  now: () => number = () => performance.now(),
): () => Promise<T> {
  let latest: { startedAtMs: number; result: Promise<T> } | undefined;
  let isRunning = false;
  return () => {
    const nowMs = now();
    if (latest !== undefined && (isRunning || nowMs - latest.startedAtMs < intervalMs)) return latest.result;
    isRunning = true;
    const result = compute().finally(() => {
      isRunning = false;
    });
    latest = { startedAtMs: nowMs, result };
    return result;
  };
}
