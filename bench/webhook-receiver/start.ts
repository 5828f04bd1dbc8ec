import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

export interface BenchReceiver {
  origin: string;
  /** When each event was first received, by `monotonicMs`. */
  received(): Promise<Map<string, number>>;
  forget(): Promise<void>;
  stop(): void;
}

export async function startBenchReceiver(): Promise<BenchReceiver> {
  const child = fork(fileURLToPath(new URL('./main.ts', import.meta.url)));
  const [{ port }] = (await once(child, 'message')) as [{ port: number }];
  const ask = async (command: string) => {
    const answered = once(child, 'message');
    child.send(command);
    const [{ received }] = (await answered) as [{ received: [string, number][] }];
    return new Map(received);
  };
  return {
    origin: `http://127.0.0.1:${port}`,
    received: () => ask('received'),
    forget: async () => {
      await ask('forget');
    },
    stop: () => child.disconnect(),
  };
}
