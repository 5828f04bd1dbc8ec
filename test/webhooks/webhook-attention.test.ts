import assert from 'node:assert/strict';
import { readGivenUp, readParked } from '../../webhooks/attention.ts';
import { DISABLED_BY_PARTNER } from '../../webhooks/endpoint-status.ts';
import { openCommands, type TestCommands } from '../support/commands/open-commands.ts';
import { accountWithEndpoint, insertEvents } from '../support/webhooks/accounts.ts';

describe('what waits for a person of webhooks', () => {
  let commands: TestCommands;
  before(async () => {
    commands = await openCommands();
  });
  after(() => commands.close());

  /** An account with live events of this status. @returns its id and its endpoint's */
  async function account(status: 'given_up' | 'parked', events: number): Promise<[string, string]> {
    const { partnerId, endpointId } = await accountWithEndpoint(commands, { mode: 'live' });
    await insertEvents(commands, partnerId, events, 'live');
    await commands.owner.query('UPDATE delivery SET status = $2 WHERE partner_id = $1', [partnerId, status]);
    if (status === 'parked')
      await commands.owner.query(
        `UPDATE webhook_endpoint SET status = 'disabled', disabled_reason = 'r' WHERE partner_id = $1`,
        [partnerId],
      );
    return [partnerId, endpointId];
  }

  for (const [events, shown] of [
    [21, '21 events'],
    [1_000, '1,000 events'],
    [1_001, 'more than 1,000 events'],
    [1_500, 'more than 1,000 events'],
  ] as const) {
    it(`is counted up to a limit: ${events} events`, async () => {
      const { orm } = commands.context;
      const [givenUp] = await account('given_up', events);
      const items = (await readGivenUp(orm)).filter(({ partner_id }) => partner_id === givenUp);
      assert.deepEqual(
        items.map(({ reason, command }) => [reason, command]),
        [
          [
            `${shown} were given up; the first with: null`,
            `npm run operator -- webhook requeue --partner ${givenUp}`,
          ],
        ],
      );
      const [parked, endpointId] = await account('parked', events);
      const [item] = (await readParked(orm)).filter(({ partner_id }) => partner_id === parked);
      assert.ok(item?.reason.startsWith(`${shown} wait for the endpoint ${endpointId}, `), item?.reason);
    });
  }

  it('leaves out what waits for an endpoint that its partner has disabled', async () => {
    const [partnerId] = await account('parked', 2);
    const ofPartner = async () => {
      const items = await readParked(commands.context.orm);
      return items.filter(({ partner_id }) => partner_id === partnerId).length;
    };
    assert.equal(await ofPartner(), 1);
    const byPartner = 'UPDATE webhook_endpoint SET disabled_reason = $2 WHERE partner_id = $1';
    await commands.owner.query(byPartner, [partnerId, DISABLED_BY_PARTNER]);
    assert.equal(await ofPartner(), 0);
  });

  it('leaves out what was given up with an endpoint that was deleted', async () => {
    const [partnerId] = await account('given_up', 2);
    await commands.owner.query('DELETE FROM webhook_endpoint WHERE partner_id = $1', [partnerId]);
    const items = await readGivenUp(commands.context.orm);
    assert.deepEqual(
      items.filter(({ partner_id }) => partner_id === partnerId),
      [],
    );
  });
});
