/** So many are held in memory at a time, which is ten pages. */
const MAX_HELD = 1_000;
const MIN_WINDOW_MS = 1_000;
/** The network's clock may be ahead of ours. */
const MAX_CLOCK_DIFFERENCE_MS = 600_000;

/**
 * What was made since then, oldest first, from a list that has the newest first. It is read in windows of
 * time, as wide as can be held in memory: one if there is little, so that a quiet month costs one request.
 * @param readWindow reads what was made from a time, and before another
 * @param madeAt when one was made
 */
export async function* oldestFirst<Listed>(
  since: Date,
  readWindow: (from: Date, before: Date) => AsyncIterable<Listed>,
  madeAt: (listed: Listed) => string,
): AsyncGenerator<Listed> {
  const untilMs = Date.now() + MAX_CLOCK_DIFFERENCE_MS;
  let fromMs = since.getTime();
  let widthMs = untilMs - fromMs;
  while (fromMs < untilMs) {
    const beforeMs = Math.min(fromMs + widthMs, untilMs);
    const held: Listed[] = [];
    for await (const listed of readWindow(new Date(fromMs), new Date(beforeMs))) {
      held.push(listed);
      if (held.length > MAX_HELD && widthMs > MIN_WINDOW_MS) break;
    }
    if (held.length > MAX_HELD && widthMs > MIN_WINDOW_MS) {
      // As wide as what was read of it, and a little less.
      const readMs = beforeMs - Date.parse(madeAt(held.at(-1) as Listed));
      widthMs = Math.max(MIN_WINDOW_MS, Math.floor(Math.min((beforeMs - fromMs) / 2, readMs * 0.8)));
      continue;
    }
    // Those of one moment keep their order.
    yield* held.reverse().sort((a, b) => Date.parse(madeAt(a)) - Date.parse(madeAt(b)));
    fromMs = beforeMs;
    if (held.length < MAX_HELD / 2) widthMs *= 2;
  }
}
