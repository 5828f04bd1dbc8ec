import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { z } from 'zod';
import { StartRefused } from '../process/run-process.ts';
import { IN_FILES, VARIABLE_NAMES } from './environment.ts';
import { misspeltProblems } from './misspelt.ts';
import { plaintextProblems } from './plaintext.ts';

/** How long ENCRYPTION_KEYS_COMMAND may take, and how much it may print. */
const COMMAND_TIMEOUT_MS = 30_000;
const MAX_COMMAND_BYTES = 65_536;

/** Names every problem of the environment at once, and never repeats a value: it may be secret. */
export class ConfigurationError extends StartRefused {
  constructor(problems: string[]) {
    const lines = problems.map((problem) => `  ${problem}`).join('\n');
    super(`The configuration is not valid. Correct these environment variables:\n${lines}`);
    this.name = 'ConfigurationError';
  }
}

/**
 * Reads the variables in `schema`. An empty value counts as unset.
 * @param alsoWrong finds problems that involve several variables
 * @param defaults for variables that are not set
 * @throws ConfigurationError
 */
export function parseEnvironment<T extends object>(
  schema: z.ZodType<T> & { shape: object },
  env: NodeJS.ProcessEnv,
  alsoWrong: (set: NodeJS.ProcessEnv) => string[] = () => [],
  defaults: NodeJS.ProcessEnv = {},
): { set: NodeJS.ProcessEnv; values: T } {
  const asked = withoutEmpty(env);
  const given = { ...withoutEmpty(defaults), ...asked };
  const isRead = (name: string) => name in schema.shape;
  const { set, problems } = readSecretFiles(given, isRead);
  if (isRead('ENCRYPTION_KEYS')) problems.push(...runKeysCommand(set, asked));
  const parsed = schema.safeParse(set);
  if (!parsed.success) problems.push(...parsed.error.issues.map((issue) => describeIssue(issue, set)));
  problems.push(...misspeltProblems(asked, VARIABLE_NAMES, IN_FILES), ...alsoWrong(set));
  problems.push(...plaintextProblems(set, isRead));
  if (!parsed.success || problems.length > 0) throw new ConfigurationError(problems);
  return { set, values: parsed.data };
}

export function withoutEmpty(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined && value !== ''));
}

function readSecretFiles(
  env: NodeJS.ProcessEnv,
  isRead: (name: string) => boolean,
): { set: NodeJS.ProcessEnv; problems: string[] } {
  const set = { ...env };
  const problems: string[] = [];
  for (const name of IN_FILES) {
    const file = env[`${name}_FILE`];
    if (file === undefined) continue;
    delete set[`${name}_FILE`];
    if (env[name] !== undefined) {
      problems.push(`${name}, ${name}_FILE: set only one of the two`);
      continue;
    }
    if (!isRead(name)) continue;
    try {
      set[name] = readFileSync(file, 'utf8').trim();
    } catch (error) {
      problems.push(`${name}_FILE: can't be read (${(error as NodeJS.ErrnoException).code})`);
    }
  }
  return { set, problems };
}

/**
 * Takes ENCRYPTION_KEYS from what ENCRYPTION_KEYS_COMMAND prints, so that Vault or a cloud's KMS can serve
 * them. What it prints is never repeated; its standard error goes to this process's, for the person who
 * starts it.
 */
function runKeysCommand(set: NodeJS.ProcessEnv, asked: NodeJS.ProcessEnv): string[] {
  const command = asked.ENCRYPTION_KEYS_COMMAND;
  if (command === undefined) return [];
  delete set.ENCRYPTION_KEYS_COMMAND;
  if (asked.ENCRYPTION_KEYS !== undefined || asked.ENCRYPTION_KEYS_FILE !== undefined)
    return ['ENCRYPTION_KEYS, ENCRYPTION_KEYS_FILE, ENCRYPTION_KEYS_COMMAND: set only one of the three'];
  const { status, signal, error, stdout } = spawnSync('/bin/sh', ['-c', command], {
    encoding: 'utf8',
    env: process.env,
    maxBuffer: MAX_COMMAND_BYTES,
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: COMMAND_TIMEOUT_MS,
  });
  const code = (error as NodeJS.ErrnoException | undefined)?.code;
  if (code === 'ETIMEDOUT')
    return [
      `ENCRYPTION_KEYS_COMMAND: took longer than ${COMMAND_TIMEOUT_MS / 1_000} s; run it by hand to see why`,
    ];
  if (code !== undefined || status !== 0)
    return [
      `ENCRYPTION_KEYS_COMMAND: failed (${code ?? signal ?? `exit code ${status}`}); run it by hand to see why`,
    ];
  const printed = stdout.trim();
  if (printed === '')
    return ['ENCRYPTION_KEYS_COMMAND: printed nothing; it has to print id:base64(32 bytes), comma-separated'];
  set.ENCRYPTION_KEYS = printed;
  return [];
}

function describeIssue(issue: z.core.$ZodIssue, set: NodeJS.ProcessEnv): string {
  const name = String(issue.path[0]);
  return `${name}: ${name in set ? issue.message : 'is required'}`;
}
