import { spawn } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { signalProcess } from './identity.ts';

interface ChildOptions {
  /** Its name in messages. */
  name: string;
  command: string;
  args: readonly string[];
  env?: NodeJS.ProcessEnv;
  cwd?: string;
  /** The user it runs as, if not ours. */
  user?: { uid: number; gid: number };
  /** Everything it prints is appended here. */
  logFile: string;
  onLine?: (line: string) => void;
  /** The signal its process group gets if this process exits without having stopped it. Default: SIGKILL. */
  lastSignal?: NodeJS.Signals;
  /** Called with the pid at once, so that the child can be found again if this process is killed. */
  onSpawn?: (name: string, pid: number) => void;
}

export interface Child {
  name: string;
  pid: number;
  logFile: string;
  /** Resolves, never rejects, with how it ended: `exit code 1`, `signal SIGKILL`. */
  exited: Promise<string>;
  /** The last lines it printed. */
  lastLines(): string[];
  /**
   * Sends each signal in turn and waits its `graceMs`, until the child has ended. The last one is SIGKILL.
   */
  stop(steps: readonly StopStep[]): Promise<void>;
}

export interface StopStep {
  signal: NodeJS.Signals;
  graceMs: number;
}

const KEPT_LINES = 15;

/**
 * Starts a long-running child in a process group of its own, so that Ctrl-C in the terminal reaches only us
 * and we decide the order of stopping.
 */
export async function startChild(options: ChildOptions): Promise<Child> {
  const { name } = options;
  const lines: string[] = [];
  const child = spawn(options.command, options.args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
    env: options.env ?? childEnvironment(),
    cwd: options.cwd,
    ...options.user,
  });
  const kill = () => signalProcess(-(child.pid as number), options.lastSignal ?? 'SIGKILL');
  const exited = new Promise<string>((resolve) => {
    child.once('exit', (code, signal) => {
      process.off('exit', kill);
      const how = signal === null ? `exit code ${code}` : `signal ${signal}`;
      // Its last output may still be in the pipe. The wait is short, since a grandchild can keep the pipe
      // open for ever.
      child.once('close', () => resolve(how));
      setTimeout(resolve, 1_000, how).unref();
    });
  });
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', (error) => reject(new Error(`${name} could not be started: ${error.message}`)));
  });
  process.on('exit', kill);
  const pid = child.pid as number;
  options.onSpawn?.(name, pid);
  const log = createWriteStream(options.logFile, { flags: 'a', mode: 0o600 });
  log.on('error', (error) => options.onLine?.(`the log file can't be written: ${error.message}`));
  const keep = (line: string) => {
    lines.push(line);
    if (lines.length > KEPT_LINES) lines.shift();
    log.write(`${line}\n`);
    options.onLine?.(line);
  };
  const ended = [child.stdout, child.stderr].map((stream) => readLines(stream, keep));
  void Promise.all(ended).then(() => log.end());

  const stop = async (steps: readonly StopStep[]) => {
    for (const { signal, graceMs } of [...steps, { signal: 'SIGKILL' as const, graceMs: 2_000 }]) {
      child.kill(signal);
      if (await endsWithin(exited, graceMs)) return;
    }
    throw new Error(`${name} (process ${pid}) does not end; kill it by hand`);
  };
  return { name, pid, logFile: options.logFile, exited, lastLines: () => [...lines], stop };
}

async function readLines(stream: Readable, onLine: (line: string) => void): Promise<void> {
  for await (const line of createInterface({ input: stream })) onLine(line);
}

function endsWithin(exited: Promise<string>, graceMs: number): Promise<boolean> {
  return Promise.race([exited.then(() => true), delay(graceMs, false, { ref: false })]);
}

/**
 * Asks every 50 ms whether a child does its work, and returns the answer as soon as there is one.
 * @throws Error if the child ends instead, or after `maxMs`; what `ask` throws
 */
export async function untilReady<T>(
  child: Child,
  ask: () => Promise<T | undefined | false>,
  maxMs = Number.POSITIVE_INFINITY,
): Promise<T> {
  let ended: string | undefined;
  void child.exited.then((how) => {
    ended = how;
  });
  for (const giveUpAt = Date.now() + maxMs; Date.now() < giveUpAt; await delay(50)) {
    if (ended !== undefined) throw endedAtOnce(child, ended);
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
  }
  throw new Error(`${child.name} is not ready after ${maxMs / 1_000} s; its log is ${child.logFile}`);
}

const MAX_LINE = 300;

/** The error for a child that ended instead of starting its work. */
export function endedAtOnce(child: Child, how: string): Error {
  const words = child.lastLines().map((line) => line.slice(0, MAX_LINE));
  return new Error(
    `${child.name} ended at once (${how}), its log is ${child.logFile}. Its last words:\n${words.join('\n')}`,
  );
}

/** What any program may need to know about this machine: paths, language, how to reach the network. */
const ORDINARY =
  /^(PATH|HOME|USER|LOGNAME|SHELL|TERM|LANG|LANGUAGE|LC_\w+|TZ|TMPDIR|TMP|TEMP|XDG_\w+|LD_LIBRARY_PATH|DYLD_LIBRARY_PATH|(HTTPS?|ALL|NO)_PROXY|\w*SSL_CERT_(FILE|DIR)|NODE_\w+|GRPC_\w+|SYSTEMROOT|WINDIR|COMSPEC|PATHEXT|USERPROFILE|(LOCAL)?APPDATA)$/i;

/**
 * The environment of a program that the local stack starts. Nothing else of our environment is passed on,
 * above all no other program's credentials.
 * @param own whether a variable is meant for it, in addition to the ordinary ones; an empty value counts as
 * unset
 */
export function childEnvironment(own: (name: string) => boolean = () => false): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(
    ([name, value]) => value !== '' && (ORDINARY.test(name) || own(name)),
  );
  return Object.fromEntries(kept);
}
