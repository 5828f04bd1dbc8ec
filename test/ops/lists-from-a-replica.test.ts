import assert from 'node:assert/strict';
import { pino } from 'pino';
import { ApiError } from '../../domain/api-error.ts';
import { type Orm, openOrm } from '../../platform/db/orm.ts';
import { type ReadList, readListsFrom } from '../../platform/db/read-replica.ts';
import { query } from '../../platform/db/sql.ts';
import { createCard } from '../support/cards.ts';
import { asOwner } from '../support/postgres.ts';
import { type ReplicatedPostgres, startReplicatedPostgres } from '../support/replicated-postgres.ts';
import { startTestStack, type TestPartner, type TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';

describe('lists, with a read replica configured,', () => {
  let postgres: ReplicatedPostgres;
  let stack: TestStack;
  let partner: TestPartner;
  let primary: Orm;
  let replica: Orm;
  let readList: ReadList;

  before(async () => {
    postgres = await startReplicatedPostgres();
    const { databaseUrl, replicaUrl } = postgres;
    stack = await startTestStack({ databaseUrl, readDatabaseUrl: replicaUrl }, { worker: false });
    partner = await stack.createPartner();
    await partner.call('POST', '/test/credit', { body: { amount: 10_000_000 }, idempotencyKey: 'credit' });
    primary = await openOrm({ databaseUrl, poolSize: 2 });
    replica = await openOrm({ databaseUrl: replicaUrl, poolSize: 2 });
    readList = readListsFrom(replica, primary, pino({ level: 'silent' }));
  });
  after(async () => {
    await stack.stop();
    await Promise.all([primary.close(), replica.close()]);
    await postgres.close();
  });

  const server = () =>
    readList(async (orm) => {
      const [row] = await query<{ standby: boolean }>(orm.em.fork(), 'SELECT pg_is_in_recovery() AS standby');
      return row?.standby ? 'replica' : 'primary';
    });
  const isReplica = async () => (await server()) === 'replica';

  let cards = 0;
  async function isListedAtOnce(): Promise<void> {
    cards += 1;
    const externalRef = `card-${cards}`;
    const made = await createCard(partner, { amount: 1_000, external_ref: externalRef });
    assert.equal(made.status, 201, made.text);
    for (const path of ['/cards', `/cards?external_ref=${externalRef}`, '/cards?status=active']) {
      const listed = await partner.call('GET', path);
      assert.equal(listed.status, 200, listed.text);
      assert.equal(listed.json.data[0].id, made.json.id, path);
    }
    const events = await partner.call('GET', '/events?limit=1');
    assert.equal(events.json.data[0].data.card.id, made.json.id);
    const balance = await partner.call('GET', '/balance/transactions?limit=1');
    assert.equal(balance.status, 200, balance.text);
  }

  it('are read from the replica, and include what was made just before', async () => {
    await until('the replica has caught up', isReplica);
    for (let i = 0; i < 10; i++) await isListedAtOnce();
    await until('a list is read there', async () => {
      await isListedAtOnce();
      return (await lastOfLists()).some((connection) => connection.query.includes('"entry"'));
    });
  });

  /** The last statement of each of the lists' connections to the replica. */
  const lastOfLists = () =>
    asOwner<{ query: string }>(
      postgres.replicaUrl,
      `SELECT query FROM pg_stat_activity WHERE application_name = 'card-issuing-lists'`,
    );

  for (const [what, away, back] of [
    ['lags', () => postgres.pauseReplay(), () => postgres.resumeReplay()],
    ['hangs', () => postgres.signalReplica('SIGSTOP'), () => postgres.signalReplica('SIGCONT')],
    ['is down', () => postgres.stopReplica(), () => postgres.startReplica()],
  ] as const) {
    it(`are read from the primary while the replica ${what}, and from the replica once it has caught up`, async () => {
      await until('the replica is used', isReplica);
      await away();
      try {
        await isListedAtOnce();
        assert.equal(await server(), 'primary');
      } finally {
        await back();
      }
      await until('the replica is used again', isReplica);
      await isListedAtOnce();
    });
  }

  it('are read from the primary if the replica fails half-way, and a wrong request is still refused', async () => {
    await until('the replica is used', isReplica);
    const cancelled = await readList(async (orm) => {
      if (orm === replica) throw new Error('canceling statement due to conflict with recovery');
      return 'primary';
    });
    assert.equal(cancelled, 'primary');
    const refused = readList(async () => {
      throw new ApiError('card_not_found');
    });
    await assert.rejects(refused, { code: 'card_not_found' });
    const unknown = await partner.call('GET', '/cards?starting_after=card_01k00000000000000000000000');
    assert.equal(unknown.status, 400);
  });

  it('are read from the primary if the other server is not its standby', async () => {
    const itself = readListsFrom(primary, primary, pino({ level: 'silent' }));
    assert.equal(await itself(async (orm) => orm === primary), true);
    const logged: string[] = [];
    const logger = pino({ level: 'warn' }, { write: (line: string) => void logged.push(line) });
    const backwards = readListsFrom(primary, primary, logger);
    await backwards(async () => null);
    assert.match(logged.join(''), /lists are read from the primary/);
  });
});
