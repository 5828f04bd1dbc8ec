import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Done, Order, Preparation } from './main.ts';

export interface BenchNode {
  url: string;
  /** The newest solid block. */
  readonly solidNumber: number;
  prepare(preparation: Preparation): Promise<void>;
  /** Makes prepared blocks solid. @returns when, on the monotonic clock */
  solidify(through: number): Promise<number>;
  stop(): void;
}

export async function startBenchNode(): Promise<BenchNode> {
  const child = fork(fileURLToPath(new URL('./main.ts', import.meta.url)));
  const [{ url, firstNumber }] = (await once(child, 'message')) as [{ url: string; firstNumber: number }];
  let solidNumber = firstNumber;
  const carryOut = async (order: Order): Promise<number> => {
    const carriedOut = once(child, 'message');
    child.send(order);
    const [{ atMs }] = (await carriedOut) as [Done];
    return atMs;
  };
  return {
    url,
    get solidNumber() {
      return solidNumber;
    },
    prepare: async (preparation) => {
      await carryOut({ prepare: preparation });
    },
    solidify: async (through) => {
      const atMs = await carryOut({ solid: through });
      solidNumber = through;
      return atMs;
    },
    stop: () => child.disconnect(),
  };
}
