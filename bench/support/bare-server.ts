import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../dev/free-port.ts';
import { until } from './service.ts';

/** Starts a floor that is an HTTP server, in a process of its own whose first argument is its port. */
export async function startBareServer(entry: URL, args: readonly string[]) {
  const port = await freePort();
  const child = spawn(process.execPath, [fileURLToPath(entry), String(port), ...args], { stdio: 'inherit' });
  const origin = `http://127.0.0.1:${port}`;
  await until('the floor answers', async () => (await fetch(origin)).ok);
  return {
    origin,
    stop: async () => {
      child.kill();
      await once(child, 'exit');
    },
  };
}
