import assert from 'node:assert/strict';
import { MikroORM } from '@mikro-orm/postgresql';
import { ENTITIES } from '../../../platform/db/entities.ts';
import { createTestDatabase, ownerUrlOf } from '../../support/postgres.ts';

/** What the migrations alone have: nothing that reads or writes a row has to know it. */
const OF_MIGRATIONS = [
  // Checks, foreign keys and uniques hold whoever writes; statements name the few that they meet (ON CONFLICT).
  /^alter table \S+ drop constraint /,
  // Indexes of lists and queues, many of them partial, which an entity can't say.
  /^drop index /,
  // The ledger is append-only and balanced; an event has its delivery from its first moment on.
  /^drop (trigger|function) if exists /,
  // Entities have the columns of these types as text.
  /^drop type "ledger"\."(account_kind|phase|side)"$/,
  // An identity that is no primary key reads as a column with a default that the entity lacks.
  /^alter table ("ledger"\."transfer"|"simulated_message"|"network_inbox") alter column "seq" drop default$/,
];

describe('entities', () => {
  it('match the migrations in every table and column', async () => {
    const orm = await MikroORM.init({
      clientUrl: ownerUrlOf(await createTestDatabase()),
      entities: ENTITIES,
      ensureDatabase: false,
      forceUtcTimezone: true,
      // It is the migrations' own.
      schemaGenerator: { skipTables: ['schema_migration', 'schema_function'] },
    });
    try {
      // What would make the database what the entities say.
      const statements = (await orm.schema.getUpdateSchemaSQL({ wrap: false })).split(/;\n+/);
      const unknown = statements.filter(
        (one) => one !== '' && !OF_MIGRATIONS.some((known) => known.test(one)),
      );
      assert.deepEqual(unknown, []);
    } finally {
      await orm.close();
    }
  });
});
