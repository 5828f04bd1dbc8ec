// Generates the secrets that docker-compose.yml needs, unless they exist, and hands each container copies of its own:
// node make-secrets.mjs <folder of all> <folder with a folder for each container>
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';

const [all = 'secrets', handedOut = 'handed-out'] = process.argv.slice(2);

/** Keeps a secret that exists. A new one is written completely or not at all, even if the start is interrupted. */
function keep(name, makeUp) {
  const file = join(all, name);
  if (!existsSync(file)) {
    writeFileSync(`${file}.new`, makeUp(), { mode: 0o400 });
    renameSync(`${file}.new`, file);
    console.log(`generated ${name}`);
  }
  chmodSync(file, 0o400);
  return readFileSync(file, 'utf8');
}

const password = () => randomBytes(24).toString('base64url');
const url = (user, secret) => () => `postgresql://${user}:${secret}@postgres:5432/card_issuing`;

keep('postgres_password', password);
keep('temporal_password', password);
keep('owner_database_url', url('card_issuing_owner', keep('owner_password', password)));
keep('api_database_url', url('card_issuing_api_login', keep('api_password', password)));
keep('worker_database_url', url('card_issuing_worker_login', keep('worker_password', password)));
keep('operator_database_url', url('card_issuing_staff', keep('operator_password', password)));
keep('encryption_keys', () => `k1:${randomBytes(32).toString('base64')}`);
keep('codec_keys', () => `c1:${randomBytes(32).toString('base64')}`);
keep('codec_tokens', password);

// The user that each image runs as: Node's is 1000, PostgreSQL's 999, Temporal's 1000, and its UI's 5000.
handOut('postgres', 999, ['postgres_password', 'owner_password', 'temporal_password']);
handOut('temporal', 1000, ['temporal_password']);
handOut('temporal-ui', 5000, ['codec_tokens']);
handOut('migrate', 1000, ['owner_database_url']);
handOut('logins', 1000, ['owner_database_url', 'api_password', 'worker_password', 'operator_password']);
handOut('api', 1000, ['api_database_url', 'encryption_keys', 'codec_keys']);
handOut('worker', 1000, ['worker_database_url', 'encryption_keys', 'codec_keys']);
handOut('codec', 1000, ['codec_keys', 'codec_tokens']);
handOut('operator', 1000, ['operator_database_url', 'encryption_keys', 'codec_keys']);

/** Only `user` may read the copies. What a container has no more need of is removed. */
function handOut(container, user, names) {
  const folder = join(handedOut, container);
  mkdirSync(folder, { recursive: true });
  for (const name of readdirSync(folder)) if (!names.includes(name)) rmSync(join(folder, name));
  for (const name of names) {
    const file = join(folder, name);
    writeFileSync(`${file}.new`, readFileSync(join(all, name)), { mode: 0o400 });
    // As root, in the container; a test of this file runs as whoever it is.
    if (process.getuid() === 0) chownSync(`${file}.new`, user, user);
    renameSync(`${file}.new`, file);
  }
}
