import assert from 'node:assert/strict';
import { once } from 'node:events';
import type pg from 'pg';
import { createMessageQueue } from '../../../payments/message-queue.ts';
import { createNotifier, EVENT_WRITTEN, notifyEvents } from '../../../platform/db/notifications.ts';
import { openOrm } from '../../../platform/db/orm.ts';
import { query } from '../../../platform/db/sql.ts';
import { transaction } from '../../../platform/db/transaction.ts';
import { asAccount } from '../../../platform/process/work-context.ts';
import { messageOf, seedCard, settlementOf } from '../../support/commands/cards.ts';
import { openCommands, type TestCommands } from '../../support/commands/open-commands.ts';
import { until } from '../../support/until.ts';

describe('a notifier', () => {
  let commands: TestCommands;
  let listener: pg.Client;
  const errors: unknown[] = [];
  beforeEach(async () => {
    commands = await openCommands();
    listener = await commands.connect();
    await listener.query(`LISTEN ${EVENT_WRITTEN}`);
  });
  afterEach(async () => {
    await listener.end();
    await commands.close();
    assert.deepEqual(errors.splice(0), []);
  });

  const announcer = (orm = commands.context.orm) =>
    createNotifier(
      () => notifyEvents(orm),
      (error) => errors.push(error),
    );

  it('notifies at once, and once more for all requests in the meantime', async () => {
    const tell = announcer();
    const first = once(listener, 'notification');
    tell();
    await new Promise(setImmediate);
    tell();
    await first;
    await once(listener, 'notification');
    const later = once(listener, 'notification');
    tell();
    await later;
  });

  it('does not wait for the turn of the account that asks first', async () => {
    const shared = await openOrm({
      databaseUrl: commands.databaseUrl,
      poolSize: 3,
      shares: { accounts: 2, eachAccount: 1 },
    });
    const account = { partnerId: 'prt_busy', mode: 'test' } as const;
    const isBusy = Promise.withResolvers<void>();
    const goOn = Promise.withResolvers<void>();
    const busy = asAccount(account, () =>
      transaction(shared, async (tx) => {
        await query(tx, 'SELECT');
        isBusy.resolve();
        await goOn.promise;
      }),
    );
    await isBusy.promise;
    const notified = once(listener, 'notification');
    asAccount(account, announcer(shared));
    await notified;
    goOn.resolve();
    await busy;
    await shared.close();
  });

  it('notifies of settled transactions', async () => {
    const tenant = { partnerId: await commands.createFundedPartner(10_000), mode: 'live' } as const;
    const cardId = await seedCard(commands, tenant, { balanceCents: 100 });
    const notified = once(listener, 'notification');
    await createMessageQueue(commands.context.orm, announcer()).take(messageOf(settlementOf(tenant, cardId)));
    const [{ channel }] = await notified;
    assert.equal(channel, EVENT_WRITTEN);
  });

  it('continues after an error', async () => {
    const { orm } = commands.context;
    let begun = 0;
    let ended = 0;
    const tell = createNotifier(
      async () => {
        begun += 1;
        try {
          if (begun === 1) await query(orm.em.fork(), 'SELECT pg_terminate_backend(pg_backend_pid())');
          await notifyEvents(orm);
        } finally {
          ended += 1;
        }
      },
      (error) => errors.push(error),
    );
    let isNotified = false;
    listener.once('notification', () => {
      isNotified = true;
    });
    // PostgreSQL takes a moment to close a connection that it has ended, so another attempt can fail as well.
    await until('it has notified', async () => {
      const before = ended;
      tell();
      await until('it has tried', () => ended > before);
      return isNotified;
    });
    assert.notDeepEqual(errors.splice(0), []);
  });
});
