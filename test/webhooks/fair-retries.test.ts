import assert from 'node:assert/strict';
import { takeUnnotifiedDeliveries } from '../../webhooks/retries.ts';
import { openCommands, type TestCommands } from '../support/commands/open-commands.ts';
import { accountWithEndpoint, insertEvents } from '../support/webhooks/accounts.ts';

describe('the workflows of failed events', () => {
  let commands: TestCommands;
  before(async () => {
    commands = await openCommands();
  });
  after(() => commands.close());
  beforeEach(() => commands.owner.query('TRUNCATE delivery'));

  /** An endpoint with failed events that no workflow knows of. @returns its id */
  async function failing(events: number): Promise<string> {
    const { partnerId, endpointId } = await accountWithEndpoint(commands);
    await insertEvents(commands, partnerId, events);
    await commands.owner.query(
      `UPDATE delivery SET status = 'retrying', workflow = 'untold', attempt_count = 1,
         next_attempt_at = now() + interval '1 hour' WHERE partner_id = $1`,
      [partnerId],
    );
    return endpointId;
  }
  /** The endpoints whose events get their workflows in the next turn. */
  const turn = async () => {
    const { unnotified } = await takeUnnotifiedDeliveries(commands.context.orm, null);
    return unnotified.map(({ endpoint_id }) => endpoint_id);
  };
  const set = (endpointId: string, fullAt: string) =>
    commands.owner.query(`UPDATE webhook_endpoint SET workflows_full_at = ${fullAt} WHERE id = $1`, [
      endpointId,
    ]);

  it('are started four at a time for each endpoint, however many wait', async () => {
    const [flood, quiet] = [await failing(50), await failing(3)];
    const taken = await turn();
    assert.deepEqual(taken.toSorted(), [flood, flood, flood, flood, quiet, quiet, quiet].toSorted());
  });

  it('are at most 16 more a second for each endpoint, whichever worker starts them', async () => {
    const endpoint = await failing(50);
    const read = async () => {
      const { rows } = await commands.owner.query<{ now: Date; full: Date }>(
        'SELECT clock_timestamp() AS now, workflows_full_at AS full FROM webhook_endpoint WHERE id = $1',
        [endpoint],
      );
      return rows[0] ?? assert.fail('there is no such endpoint');
    };
    const before = await read();
    assert.equal((await turn()).length, 4);
    const after = await read();
    const [earliest, latest] = [before.now.getTime() + 250, after.now.getTime() + 250];
    assert.ok(earliest <= after.full.getTime() && after.full.getTime() <= latest, 'four at 62.5 ms each');
    await set(endpoint, `clock_timestamp() + interval '1 minute'`);
    const quiet = await failing(1);
    assert.deepEqual(await turn(), [quiet]);
    await set(endpoint, `'-infinity'`);
    assert.equal((await turn()).length, 4);
  });

  it('are left to the worker that is serving the endpoint, and delay no other', async () => {
    const [endpoint, other] = [await failing(5), await failing(1)];
    await using worker = await commands.connect();
    await worker.query('BEGIN');
    await worker.query('SELECT FROM webhook_endpoint WHERE id = $1 FOR NO KEY UPDATE', [endpoint]);
    assert.deepEqual(await turn(), [other]);
  });
});
