import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { type Compilable, type RawBuilder, sql } from 'kysely';
import { ENTITIES } from '../../../platform/db/entities.ts';
import { type BuiltStatement, type Writes, writeStatement } from '../../../platform/db/sql.ts';
import { BUILT_STATEMENTS } from '../../support/built-statements.ts';
import { connectTo, createTestDatabase, ownerUrlOf } from '../../support/postgres.ts';
import { isOfTenants, readSchema, type Schema, unboundTables } from '../../support/tenant-guard.ts';

/** Where statements are built that no process of production runs. */
const ELSEWHERE = /^(node_modules|test|bench|dev|client)\//;
/** The folder of the tests, as it stands in a stack. */
const TESTS = new URL('../../', import.meta.url).href;
const BUILDS = /(Statement|statementWithOperation)\(/;

describe('the tenant guard', () => {
  let schema: Schema;
  let url: string;
  before(async () => {
    url = await createTestDatabase();
    schema = await readSchema(url);
    const files = globSync('*/**/*.ts').filter((file) => !ELSEWHERE.test(file) && BUILDS.test(textOf(file)));
    for (const file of files) await import(`../../../${file}`);
    assert.ok(ofTheService().length > 250, 'the statements were not found');
  });

  // Tests that ran earlier in this process have built statements of their own.
  const ofTheService = () => BUILT_STATEMENTS.filter((statement) => !placeOf(statement).includes(TESTS));

  it('hears of every statement, and PostgreSQL can prepare it: its tables, columns and functions are there', async () => {
    await using owner = await connectTo(ownerUrlOf(url));
    const wrong = [];
    for (const statement of ofTheService()) {
      const prepared = owner.query(`PREPARE one AS ${statement.text}`);
      const problem = await prepared.then(
        () => null,
        (error: Error) => error.message,
      );
      if (problem === null) await owner.query('DEALLOCATE one');
      else wrong.push(`${problem}: ${placeOf(statement)} ${statement.text}`);
    }
    assert.deepEqual(wrong, []);
  });

  it('finds every statement tied to the account and mode it is given, unless it says why not', async () => {
    const unbound = [];
    /** Whether a place in the code that gives a reason needs it: it can build a statement for each of several tables. */
    const reasons = new Map<string, boolean>();
    for (const statement of ofTheService()) {
      const place = placeOf(statement);
      const tables = await unboundTables(schema, statement);
      if (statement.acrossTenants !== undefined) {
        reasons.set(place, reasons.get(place) === true || tables.length > 0);
      } else if (tables.length > 0) {
        unbound.push(
          `${tables.join(', ')}: use partnerId and mode, or say acrossTenants: ${place} ${statement.text}`,
        );
      }
    }
    const needless = [...reasons].filter(([, isNeeded]) => !isNeeded);
    assert.deepEqual(unbound, []);
    assert.deepEqual(needless, [], 'these are tied to an account and mode, so they need no acrossTenants');
  });

  it('knows the tables of tenants as the entities have them', () => {
    const columns = ENTITIES.map(({ meta: { schema: name, tableName, properties } }) => ({
      table: name === undefined ? tableName : `${name}.${tableName}`,
      isOfTenants: 'partnerId' in properties && 'mode' in properties,
    }));
    for (const { table, isOfTenants: expected } of columns) {
      assert.equal(isOfTenants(schema, table), expected, table);
    }
  });

  /** What the guard says of a statement that is built like this. */
  const judge = (build: Build) => {
    writeStatement(build);
    return unboundTables(schema, BUILT_STATEMENTS.pop() as BuiltStatement);
  };

  it('refuses what can reach a row of another account or the other mode', async () => {
    const unbound: Build[] = [
      (_) => sql`SELECT FROM card`,
      (_, { partnerId }) => sql`SELECT FROM card WHERE partner_id = ${partnerId}`,
      (_, { partnerId, other }) => sql`SELECT FROM card WHERE partner_id = ${partnerId} AND mode = ${other}`,
      (_, { partnerId, mode }) => sql`SELECT FROM card WHERE partner_id = ${mode} AND mode = ${partnerId}`,
      (_, { partnerId, mode }) => sql`SELECT FROM card WHERE partner_id = ${partnerId} OR mode = ${mode}`,
      (_, { partnerId, mode }) =>
        sql`SELECT FROM card WHERE NOT (partner_id = ${partnerId} AND mode = ${mode})`,
      (_, { partnerId, mode }) => sql`
        SELECT FROM card c, card d WHERE c.partner_id = ${partnerId} AND c.mode = ${mode}`,
      (_, { partnerId, mode }) => sql`
        SELECT (SELECT count(*) FROM card) FROM card WHERE partner_id = ${partnerId} AND mode = ${mode}`,
      (_, { partnerId, mode }) => sql`
        SELECT FROM card c LEFT JOIN card_transfer t ON c.partner_id = ${partnerId} AND c.mode = ${mode} AND t.card_id = c.id`,
      (_, { partnerId, mode, other }) => sql`
        SELECT FROM card WHERE (partner_id, mode, id) >= (${partnerId}, ${mode}, ${other})
          AND (partner_id, mode, id) < (${partnerId}, '~', '~')`,
      (_, { partnerId, mode }) => sql`
        WITH known AS (SELECT 1 FROM card WHERE partner_id = ${partnerId} AND mode = ${mode})
        UPDATE card SET email = '' FROM known`,
      (_, { partnerId, mode }) => sql`
        SELECT FROM card WHERE partner_id = ${partnerId} AND mode = ${mode} UNION ALL SELECT FROM card`,
      (_, { mode, other }) =>
        sql`INSERT INTO event (id, partner_id, mode) VALUES (${other}, ${other}, ${mode})`,
      (_, { partnerId, mode, other }) => sql`
        INSERT INTO card (id, partner_id, mode) VALUES (${other}, ${partnerId}, ${mode})
        ON CONFLICT (id) DO UPDATE SET email = ${other}`,
    ];
    for (const build of unbound) assert.notDeepEqual(await judge(build), [], String(build));
  });
});

interface Values {
  partnerId: string;
  mode: 'test' | 'live';
  other: string;
}

type Build = (db: Writes, values: Values) => Compilable | RawBuilder<unknown>;

const textOf = (file: string) => readFileSync(file, 'utf8');

/** Where a statement was built: the first line outside what builds statements. */
function placeOf({ built }: BuiltStatement): string {
  const frames = (built.stack ?? '').split('\n').filter((line) => /^ {4}at .*:\d+:\d+\)?$/.test(line));
  const [place = ''] = frames.filter((line) => !/\/(db\/sql|ledger\/apply-posting)\.ts:/.test(line));
  return place.trim();
}
