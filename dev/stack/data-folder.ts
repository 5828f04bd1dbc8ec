import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { type FileLock, readJsonFile, tryLock, writePrivateFile } from '../process/files.ts';

export type DataFolder = ReturnType<typeof dataFolder>;

/** Where the local stack keeps its files. */
export function dataFolder(dataDir = process.env.DATA_DIR || '.data') {
  const path = resolve(dataDir);
  return {
    path,
    lock: join(path, 'stack.lock'),
    /** The pid of whoever has the lock, for people. */
    holder: join(path, 'stack.pid'),
    /** Generated passwords and keys. */
    secrets: join(path, 'secrets.json'),
    ports: join(path, 'ports.json'),
    children: join(path, 'children.json'),
    demoPartner: join(path, 'demo-partner.json'),
    /** What other programs read about a running stack (docs/local-stack.md, "What it starts"). */
    stack: join(path, 'stack.json'),
    postgres: join(path, 'postgres'),
    /** Where PostgreSQL's data is when it can't be here. */
    postgresLocation: join(path, 'postgres-location.json'),
    temporal: join(path, 'temporal'),
    /** The state of the fake TRON node's chain. */
    tron: join(path, 'tron.json'),
    /** What each fake issuer has made. */
    issuers: join(path, 'issuers'),
    logs: join(path, 'logs'),
  };
}

/**
 * Creates the folder if there is none. Other users may pass through it, whatever the umask, since PostgreSQL
 * may have to run as one; every secret in it has a mode of its own.
 */
function makeDataFolder(folder: DataFolder): void {
  if (!existsSync(folder.path)) {
    mkdirSync(folder.path, { recursive: true });
    chmodSync(folder.path, 0o711);
  }
  mkdirSync(folder.logs, { recursive: true, mode: 0o700 });
  mkdirSync(folder.issuers, { recursive: true, mode: 0o700 });
}

/**
 * Makes the data folder ours until the lock is released or this process ends.
 * @throws Error naming the process that has it
 */
export function takeDataFolder(folder: DataFolder): FileLock {
  makeDataFolder(folder);
  const lock = tryLock(folder.lock);
  if (lock === undefined) {
    throw new Error(
      `a stack already runs on ${folder.path} (process ${holder(folder)}): stop it first, or set DATA_DIR to another folder`,
    );
  }
  writeFileSync(folder.holder, String(process.pid));
  return lock;
}

function holder(folder: DataFolder): string {
  try {
    return readFileSync(folder.holder, 'utf8');
  } catch (error) {
    // The holder has the lock, but has not written its pid yet.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 'unknown';
    throw error;
  }
}

const Login = z.object({ user: z.string(), password: z.string() });

const Secrets = z.object({
  postgresPassword: z.string(),
  /** In the form of ENCRYPTION_KEYS. */
  encryptionKeys: z.string(),
  /** In the form of CODEC_KEYS, and of CODEC_TOKENS. */
  codecKeys: z.string(),
  codecToken: z.string(),
  /** The logins of the API, the worker, and the operator's command line. */
  logins: z.object({ api: Login, worker: Login, operator: Login }),
});

export type Secrets = z.infer<typeof Secrets>;

/** What is generated once for a data folder and must not be lost while its data is kept. */
export function loadSecrets(file: string): Secrets {
  // An older folder lacks some of them.
  const known = readJsonFile(file, Secrets.extend({ logins: Secrets.shape.logins.partial() }).partial());
  const secrets = {
    postgresPassword: randomBytes(24).toString('base64url'),
    encryptionKeys: `local:${randomBytes(32).toString('base64')}`,
    codecKeys: `local:${randomBytes(32).toString('base64')}`,
    codecToken: randomBytes(24).toString('base64url'),
    ...known,
    logins: {
      api: newLogin('api'),
      worker: newLogin('worker'),
      operator: newLogin('operator'),
      ...known?.logins,
    },
  };
  writePrivateFile(file, JSON.stringify(secrets, null, 2));
  return secrets;
}

/** Its name is one that no other data folder uses on the same server. */
function newLogin(what: string): z.infer<typeof Login> {
  const user = `card_issuing_${what}_${randomBytes(4).toString('hex')}`;
  return { user, password: randomBytes(24).toString('base64url') };
}
