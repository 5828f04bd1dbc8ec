// Generates the secrets that docker-compose.yml needs, each in a file, unless it exists: node make-secrets.mjs <folder>
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const [folder = '.'] = process.argv.slice(2);

/** Keeps a secret that exists. A new one is written completely or not at all, even if the start is interrupted. */
function keep(name, makeUp) {
  const file = join(folder, name);
  if (!existsSync(file)) {
    // Every container's user may read the file: docker-compose.yml says which containers have the volume.
    writeFileSync(`${file}.new`, makeUp(), { mode: 0o444 });
    renameSync(`${file}.new`, file);
    console.log(`generated ${name}`);
  }
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
