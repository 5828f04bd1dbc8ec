import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';

/** A process of this project, as production runs it; its output goes to `logFile`. */
interface StartedProcess {
  child: ChildProcess;
  stop(): Promise<void>;
}

export function startProcess(entry: string, env: Record<string, string>, logFile: string): StartedProcess {
  const output = openSync(logFile, 'a');
  const child = spawn(process.execPath, [entry], {
    env: { ...process.env, ...env },
    stdio: ['ignore', output, output],
  });
  return {
    child,
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGTERM');
      await once(child, 'exit');
    },
  };
}
