import { chmodSync, existsSync, mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';

/** Where the local stack keeps what. */
export interface DataFolder {
  path: string;
  lock: string;
  /** The pid of whoever has the lock, for people. */
  holder: string;
  /** Generated passwords and keys. */
  secrets: string;
  ports: string;
  children: string;
  demoPartner: string;
  /** What operations.md promises to other programs. */
  stack: string;
  postgres: string;
  /** Where PostgreSQL's data is when it can't be here. */
  postgresLocation: string;
  temporal: string;
  /** What the fake TRON node's chain is made of. */
  tron: string;
  logs: string;
}

export function dataFolder(dataDir: string): DataFolder {
  const path = resolve(dataDir);
  return {
    path,
    lock: join(path, 'stack.lock'),
    holder: join(path, 'stack.pid'),
    secrets: join(path, 'secrets.json'),
    ports: join(path, 'ports.json'),
    children: join(path, 'children.json'),
    demoPartner: join(path, 'demo-partner.json'),
    stack: join(path, 'stack.json'),
    postgres: join(path, 'postgres'),
    postgresLocation: join(path, 'postgres-location.json'),
    temporal: join(path, 'temporal'),
    tron: join(path, 'tron.json'),
    logs: join(path, 'logs'),
  };
}

/**
 * Makes the folder where there is none. Others may pass through it, whatever the umask, since PostgreSQL can have to
 * run as another user; every secret in it has a mode of its own.
 */
export function makeDataFolder(folder: DataFolder): void {
  if (!existsSync(folder.path)) {
    mkdirSync(folder.path, { recursive: true });
    chmodSync(folder.path, 0o711);
  }
  mkdirSync(folder.logs, { recursive: true, mode: 0o700 });
}
