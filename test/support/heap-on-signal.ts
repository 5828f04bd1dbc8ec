import { appendFileSync } from 'node:fs';

/** Loaded into a process with --expose-gc: at each SIGUSR2 it writes a line to HEAP_FILE, the bytes in use after a collection. */
process.on('SIGUSR2', () => {
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  appendFileSync(process.env.HEAP_FILE ?? '', `${heapUsed + external}\n`);
});
