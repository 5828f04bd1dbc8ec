// Makes up what docker-compose.yml needs to be secret, one file each, unless it is there: node make-secrets.mjs <folder>
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const [folder = '.'] = process.argv.slice(2);

/** Keeps what an earlier start made up. Written whole or not at all, so that a start cut short leaves no half of one. */
function keep(name, makeUp) {
  const file = join(folder, name);
  if (!existsSync(file)) {
    // The containers run as different users; who may read the volume is said in docker-compose.yml.
    writeFileSync(`${file}.new`, makeUp(), { mode: 0o444 });
    renameSync(`${file}.new`, file);
    console.log(`made up ${name}`);
  }
  return readFileSync(file, 'utf8');
}

const password = () => randomBytes(24).toString('base64url');
const url = (user, secret) => () => `postgresql://${user}:${secret}@postgres:5432/card_issuing`;

keep('postgres_password', password);
keep('temporal_password', password);
keep('owner_database_url', url('card_issuing_owner', keep('owner_password', password)));
keep('service_database_url', url('card_issuing_service', keep('service_password', password)));
keep('operator_database_url', url('card_issuing_staff', keep('operator_password', password)));
keep('encryption_keys', () => `k1:${randomBytes(32).toString('base64')}`);
keep('codec_keys', () => `c1:${randomBytes(32).toString('base64')}`);
keep('codec_tokens', password);
