/**
 * Runs the tasks, `width` at a time, and returns a promise for each. For tests that mostly wait: each is then awaited
 * and reported separately.
 */
export function inParallel<T>(width: number, tasks: readonly (() => Promise<T>)[]): Promise<T>[] {
  const waiting = tasks.map((task) => ({ task, ...Promise.withResolvers<T>() }));
  const results = waiting.map(({ promise }) => promise);
  const work = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      await next.task().then(next.resolve, next.reject);
    }
  };
  for (let worker = 0; worker < width; worker++) void work();
  // A failure is reported where its promise is awaited, which may be later.
  void Promise.allSettled(results);
  return results;
}
