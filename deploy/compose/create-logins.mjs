// The logins of the API, the worker and the operator, members of the roles that the migrations create. Can be run again.
import { readFileSync } from 'node:fs';
import pg from 'pg';

const read = (name) => readFileSync(`/run/secrets/${name}`, 'utf8');

const owner = new pg.Client(read('owner_database_url'));
await owner.connect();
await create('card_issuing_api_login', 'card_issuing_api', read('api_password'));
await create('card_issuing_worker_login', 'card_issuing_worker', read('worker_password'));
await create('card_issuing_staff', 'card_issuing_operator', read('operator_password'));
await owner.end();

async function create(login, role, password) {
  const { rows } = await owner.query('SELECT FROM pg_roles WHERE rolname = $1', [login]);
  if (rows.length > 0) return;
  await owner.query(`CREATE ROLE ${login} LOGIN PASSWORD ${owner.escapeLiteral(password)} IN ROLE ${role}`);
  console.log(`created the login ${login}`);
}
