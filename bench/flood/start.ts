import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { FloodOrder } from './main.ts';

export interface Flood {
  /** @returns how often each status was answered, once all requests are answered */
  stop(): Promise<Record<string, number>>;
}

export function startFlood(order: FloodOrder): Flood {
  const child = fork(fileURLToPath(new URL('./main.ts', import.meta.url)));
  child.send(order);
  return {
    stop: async () => {
      const ended = once(child, 'message');
      child.send('stop');
      const [statuses] = (await ended) as [Record<string, number>];
      child.disconnect();
      return statuses;
    },
  };
}
