import { tmpdir } from 'node:os';
import { childEnvironment, isForGo } from '../../process/child-environment.ts';
import { endedAtOnce } from '../../process/last-words.ts';
import { startChild } from '../../process/start-child.ts';

export interface GoInstallOptions {
  /** `path@version`. */
  module: string;
  outputFolder: string;
  searchPath: string;
  logFile: string;
  onProgress: (line: string) => void;
}

const REPORT_EVERY_MS = 5_000;

/** Compiles one program of a published module, saying every few seconds that it is still at it. */
export async function goInstall(options: GoInstallOptions): Promise<void> {
  const startedAt = Date.now();
  let said = { line: 'starting', at: startedAt };
  const report = () => {
    const doing = Date.now() - said.at < REPORT_EVERY_MS ? said.line : 'compiling';
    options.onProgress(`${Math.round((Date.now() - startedAt) / 1000)} s: ${doing}`);
  };
  const child = await startChild({
    name: `go install ${options.module}`,
    command: 'go',
    args: ['install', '-ldflags=-s -w', '-trimpath', options.module],
    env: {
      ...childEnvironment(isForGo),
      PATH: options.searchPath,
      GOBIN: options.outputFolder,
      GOFLAGS: '-mod=mod',
    },
    // Away from any go.mod.
    cwd: tmpdir(),
    logFile: options.logFile,
    onLine: (line) => {
      said = { line: line.replace(/^go: /, ''), at: Date.now() };
    },
  });
  report();
  const timer = setInterval(report, REPORT_EVERY_MS);
  try {
    const how = await child.exited;
    if (how !== 'exit code 0') throw endedAtOnce(child, how);
  } finally {
    clearInterval(timer);
  }
}
