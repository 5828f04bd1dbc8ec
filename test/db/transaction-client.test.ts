import assert from 'node:assert/strict';
import type { EventEmitter } from 'node:events';
import pg from 'pg';
import { newId } from '../../db/new-id.ts';
import { PreparedClient } from '../../db/prepared-client.ts';
import { TransactionClient } from '../../db/transaction-client.ts';
import { createTestDatabase, ownerUrlOf } from '../support/postgres.ts';

const INSERT = `INSERT INTO partner (id, name) VALUES ($1, 'x') RETURNING id`;

for (const Client of [PreparedClient, TransactionClient]) {
  describe(`a transaction of a ${Client.name}`, () => {
    let client: pg.Client;
    let owner: pg.Client;
    /** How often the server has said that it is ready for the next round trip. */
    let roundTrips: number;
    before(async () => {
      const url = ownerUrlOf(await createTestDatabase());
      client = new Client({ connectionString: url });
      owner = new pg.Client(url);
      await client.connect();
      await owner.connect();
      const { connection } = client as unknown as { connection: EventEmitter };
      connection.on('readyForQuery', () => {
        roundTrips += 1;
      });
    });
    beforeEach(() => {
      roundTrips = 0;
    });
    after(async () => {
      await client.end();
      await owner.end();
    });

    async function transaction<T>(work: () => Promise<T>): Promise<T> {
      await client.query('begin');
      try {
        const result = await work();
        await client.query('commit');
        return result;
      } catch (error) {
        await client.query('rollback');
        throw error;
      }
    }
    const insert = (id: string) => client.query(INSERT, [id]);
    const partnersOf = async (id: string) =>
      (await owner.query('SELECT id FROM partner WHERE id = $1', [id])).rows;
    const statusNow = () => (client as unknown as { getTransactionStatus(): string }).getTransactionStatus();

    it('begins with its first statement, which is answered like any other', async () => {
      await insert(newId('prt'));
      roundTrips = 0;
      const id = newId('prt');
      await transaction(async () => {
        const { rows, command, rowCount } = await insert(id);
        assert.deepEqual({ rows, command, rowCount }, { rows: [{ id }], command: 'INSERT', rowCount: 1 });
        assert.equal(statusNow(), 'T');
        assert.deepEqual(await partnersOf(id), []);
      });
      assert.equal(roundTrips, 2);
      assert.equal(statusNow(), 'I');
      assert.deepEqual(await partnersOf(id), [{ id }]);
    });

    it('begins in time where its first statement has no parameters, or no rows', async () => {
      const id = newId('prt');
      const undone = transaction(async () => {
        await client.query(`INSERT INTO partner (id, name) VALUES ('${id}', 'x')`);
        throw new Error('no');
      });
      await assert.rejects(undone, /^Error: no$/);
      assert.deepEqual(await partnersOf(id), []);
      for (let time = 0; time < 2; time++) {
        const { rowCount } = await transaction(() =>
          client.query('UPDATE partner SET name = $1 WHERE false', ['y']),
        );
        assert.equal(rowCount, 0);
      }
    });

    it('is over where its first statement fails, and the statement is as good as before', async () => {
      const id = newId('prt');
      const twice = async () => {
        await insert(id);
        await insert(id);
      };
      for (let time = 0; time < 3; time++) {
        await assert.rejects(transaction(twice), { code: '23505' });
        assert.equal(statusNow(), 'I');
        assert.deepEqual(await partnersOf(id), []);
      }
      await insert(id);
      for (let time = 0; time < 3; time++) {
        await assert.rejects(
          transaction(() => insert(id)),
          { code: '23505' },
        );
        await assert.rejects(
          transaction(() => client.query('SELECT nothing_like_it($1)', [id])),
          { code: '42883' },
        );
        assert.equal(statusNow(), 'I');
      }
    });

    it('begins anew where the one before had no statement, which asked nothing', async () => {
      await transaction(async () => {});
      assert.equal(roundTrips, 0);
      const id = newId('prt');
      const undone = transaction(async () => {
        await insert(id);
        throw new Error('no');
      });
      await assert.rejects(undone, /^Error: no$/);
      assert.deepEqual(await partnersOf(id), []);
      await insert(id);
      assert.deepEqual(await partnersOf(id), [{ id }]);
    });

    it('does nothing where PostgreSQL refuses to begin it', async () => {
      await insert(newId('prt'));
      const id = newId('prt');
      const { connection } = client as unknown as { connection: { parse(message: { text: string }): void } };
      const { parse } = connection;
      connection.parse = (message) =>
        parse.call(connection, {
          ...message,
          text: message.text === 'begin' ? 'begin nothing' : message.text,
        });
      try {
        await assert.rejects(
          transaction(() => insert(id)),
          { code: '42601' },
        );
      } finally {
        connection.parse = parse;
      }
      assert.deepEqual(await partnersOf(id), []);
      await transaction(() => insert(id));
      assert.deepEqual(await partnersOf(id), [{ id }]);
    });
  });
}
