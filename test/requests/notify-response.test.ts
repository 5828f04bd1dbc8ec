import assert from 'node:assert/strict';
import { once } from 'node:events';
import { pino } from 'pino';
import { openResponseHints } from '../../api/http/response-hints.ts';
import { newId } from '../../platform/crypto/new-id.ts';
import { CLAIM_HAS_RESPONSE } from '../../platform/db/notifications.ts';
import { transaction } from '../../platform/db/transaction.ts';
import type { ClaimedWorkflow } from '../../requests/claimed-workflow.ts';
import { storeResponse } from '../../requests/response.ts';
import { notifyResponse } from '../../requests/response-notice.ts';
import { openCommands, type TestCommands } from '../support/commands/open-commands.ts';
import { asOwner } from '../support/postgres.ts';
import { until } from '../support/until.ts';

const RESOURCE = { name: 'Zoë Quartz' };

describe('the response to a claim', () => {
  let commands: TestCommands;
  before(async () => {
    commands = await openCommands();
  });
  after(() => commands.close());

  async function claim(): Promise<ClaimedWorkflow> {
    const partnerId = await commands.createFundedPartner(100);
    const about = { partnerId, mode: 'test', cardId: newId('card') } as const;
    const claimId = await commands.claimOf('freeze_card', about, {});
    return { ...about, claimId, operation: 'freeze_card', taskQueue: 'none', deadlineMs: 0 };
  }

  const store = ({ claimId }: ClaimedWorkflow) => {
    const { orm, ring } = commands.context;
    return transaction(orm, (tx) => storeResponse({ tx, ring }, claimId, 201, RESOURCE));
  };

  const open = () =>
    openResponseHints({
      ...commands.context,
      direct: { databaseUrl: commands.databaseUrl, onOwnerLogin: undefined },
      eventsWritten: () => {},
      on: {},
      logger: pino({ level: 'silent' }),
    });
  const listeners = async () => {
    const listening = `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'`;
    return (await asOwner<{ pid: number }>(commands.databaseUrl, listening)).map(({ pid }) => pid);
  };

  it('is announced by the id of the claim alone', async () => {
    const workflow = await claim();
    await store(workflow);
    const listener = await commands.connect();
    try {
      await listener.query(`LISTEN ${CLAIM_HAS_RESPONSE}`);
      const notified = once(listener, 'notification');
      await notifyResponse(commands.context.orm.em.fork(), { claimId: workflow.claimId });
      const [{ payload }] = await notified;
      assert.equal(payload, workflow.claimId);
    } finally {
      await listener.end();
    }
  });

  it('is heard by who waits for it, also if it was announced while nobody was connected', async () => {
    const hints = open();
    await until('it listens', async () => (await listeners()).length === 1);
    const [announced, missed] = [await claim(), await claim()];
    const heard = [announced, missed].map((one) => hints.hear(one, ({ answered }) => answered));
    await store(missed);
    await store(announced);
    await notifyResponse(commands.context.orm.em.fork(), { claimId: announced.claimId });
    assert.deepEqual(await heard[0], { status: 201, body: JSON.stringify(RESOURCE) });
    await asOwner(commands.databaseUrl, 'SELECT pg_terminate_backend(pid) FROM unnest($1::int[]) pid', [
      await listeners(),
    ]);
    assert.deepEqual(await heard[1], { status: 201, body: JSON.stringify(RESOURCE) });
    await hints.stop();
  });
});
