import assert from 'node:assert/strict';
import { pruneUsage, shareUsage } from '../../accounts/usage.ts';
import { openOrm } from '../../platform/db/orm.ts';
import { asOwner, createTestDatabase } from '../support/postgres.ts';

describe('what limits have counted', () => {
  it('is deleted once it counts no more, whoever the limit is of', async () => {
    const databaseUrl = await createTestDatabase();
    const orm = await openOrm({ databaseUrl, poolSize: 2 });
    await shareUsage(
      orm,
      new Map([
        ['reveal/2001:db8::/64', 1_000],
        ['key_1', 60_000],
      ]),
    );
    await asOwner(
      databaseUrl,
      "UPDATE usage_bucket SET full_at = now() - interval '2 hours' WHERE name LIKE 'reveal/%'",
    );
    await pruneUsage(orm);
    assert.deepEqual(await asOwner(databaseUrl, 'SELECT name FROM usage_bucket'), [{ name: 'key_1' }]);
    await orm.close();
  });
});
