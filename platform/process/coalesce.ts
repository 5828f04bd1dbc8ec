interface CoalesceOptions<Item, Result> {
  /**
   * Processes items together, those of one lane next to each other. The next batch may start as soon as this
   * resolves; a result that is still a promise by then only delays its own lane. If it rejects, so does every
   * item.
   * @returns the results, in the order of the items
   */
  run(items: readonly Item[]): Promise<readonly (Result | Promise<Result>)[]>;
  /** How many items a batch can have. */
  maxTogether: number;
  /** How many batches run at once. Default: 1. */
  maxUnderWay?: number;
  /** Items of one lane are never in two batches at once, and keep their order. Default: a single lane. */
  laneOf?(item: Item): string;
}

/**
 * Batches calls: items that arrive in the same turn of the event loop, or while no batch may start, share the
 * next batch. If no batch is running, an item waits for nobody.
 * @returns a function that takes an item and resolves to its result
 */
export function coalesce<Item, Result>({
  run,
  maxTogether,
  maxUnderWay = 1,
  laneOf = () => '',
}: CoalesceOptions<Item, Result>): (item: Item) => Promise<Result> {
  interface Waiting extends PromiseWithResolvers<Result> {
    item: Item;
  }
  /** The lane that has waited longest is first. */
  const lanes = new Map<string, Waiting[]>();
  const busyLanes = new Set<string>();
  let freePlaces = maxUnderWay;
  let isStarting = false;

  /** At the end of this turn of the event loop, so that what arrived together goes together. */
  function startSoon(): void {
    if (isStarting) return;
    isStarting = true;
    setImmediate(() => {
      isStarting = false;
      startBatches();
    });
  }

  /** Shares out the lanes that can go among the places that are free. */
  function startBatches(): void {
    const ready = [...lanes.keys()].filter((lane) => !busyLanes.has(lane));
    const lanesEach = Math.ceil(ready.length / Math.max(freePlaces, 1));
    for (let places = freePlaces; places > 0 && ready.length > 0; places--) {
      void serve(take(ready.splice(0, lanesEach)));
    }
  }

  function take(ready: readonly string[]): Map<string, Waiting[]> {
    const batch = new Map<string, Waiting[]>();
    let room = maxTogether;
    for (const lane of ready) {
      if (room === 0) break;
      const waiting = lanes.get(lane) ?? [];
      const taken = waiting.splice(0, room);
      room -= taken.length;
      batch.set(lane, taken);
      busyLanes.add(lane);
      // If there is more of it, it goes behind the others.
      lanes.delete(lane);
      if (waiting.length > 0) lanes.set(lane, waiting);
    }
    return batch;
  }

  async function serve(batch: ReadonlyMap<string, readonly Waiting[]>): Promise<void> {
    freePlaces -= 1;
    const all = [...batch.values()].flat();
    try {
      const results = await run(all.map(({ item }) => item));
      for (const [index, { resolve }] of all.entries()) resolve(results[index] as Result | Promise<Result>);
    } catch (error) {
      for (const { reject } of all) reject(error);
    }
    freePlaces += 1;
    startSoon();
    for (const [lane, served] of batch) {
      void Promise.allSettled(served.map(({ promise }) => promise)).then(() => {
        busyLanes.delete(lane);
        startSoon();
      });
    }
  }

  return (item) => {
    const waiting = { item, ...Promise.withResolvers<Result>() };
    const lane = laneOf(item);
    const others = lanes.get(lane);
    if (others === undefined) lanes.set(lane, [waiting]);
    else others.push(waiting);
    startSoon();
    return waiting.promise;
  };
}
