import assert from 'node:assert/strict';
import { pino } from 'pino';
import { listenToNotifications, type NotificationListener } from '../../../platform/db/notifications.ts';
import { asOwner, createTestDatabase } from '../../support/postgres.ts';
import { until } from '../../support/until.ts';

describe('a listener', () => {
  let databaseUrl: string;
  let listening: NotificationListener;
  let heard: string[];
  let logged: string[];
  let timesListening: number;

  const start = async () => {
    [heard, logged, timesListening] = [[], [], 0];
    listening = listenToNotifications({
      database: { databaseUrl, onOwnerLogin: undefined },
      on: { news: (payload) => heard.push(payload) },
      logger: pino({ level: 'info' }, { write: (line: string) => logged.push(JSON.parse(line).msg) }),
      onListening: () => timesListening++,
    });
    await until('it listens', async () => timesListening === 1);
  };
  const hears = async (payload: string) => {
    await asOwner(databaseUrl, `NOTIFY news, '${payload}'`);
    await until(`it hears ${payload}`, async () => heard.includes(payload));
  };

  before(async () => {
    databaseUrl = await createTestDatabase();
  });

  it('receives notifications, and ends silently when it is stopped', async () => {
    await start();
    await hears('one');
    await listening.stop();
    assert.deepEqual(logged, []);
  });

  it('reports that it lost its connection, and listens on another', async () => {
    await start();
    await asOwner(
      databaseUrl,
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE datname = current_database() AND query LIKE 'LISTEN%'`,
    );
    await until('it listens again', async () => timesListening === 2);
    assert.ok(logged.includes('lost the connection to the database'), logged.join());
    await hears('two');
    await listening.stop();
  });
});
