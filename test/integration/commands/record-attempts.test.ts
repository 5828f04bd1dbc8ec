import assert from 'node:assert/strict';
import { type Attempt, recordAttempts } from '../../../commands/webhooks/deliveries.ts';
import { setEndpoint } from '../../../commands/webhooks/endpoints.ts';
import { newId } from '../../../crypto/new-id.ts';
import { openCommands, type TestCommands } from '../../support/commands/open-commands.ts';

const LINES = 8;
const EACH = 40;

describe('the record of webhook attempts', function () {
  this.timeout(120_000);
  let commands: TestCommands;
  let partnerId: string;
  let endpointId: string;

  before(async () => {
    commands = await openCommands();
  });
  after(() => commands.close());
  beforeEach(async () => {
    partnerId = await commands.createFundedPartner(1);
    const url = 'https://hooks.example.com/';
    const { endpoints } = await setEndpoint(commands.context, { partnerId, modes: ['test'], url });
    endpointId = endpoints[0]?.id ?? '';
  });

  async function write(count: number): Promise<string[]> {
    const ids = Array.from({ length: count }, () => newId('evt'));
    await commands.owner.query(
      `INSERT INTO event (id, partner_id, mode, type, body, created_at)
       SELECT id, $2, 'test', 'ping', '{}', now() FROM unnest($1::text[]) id`,
      [ids, partnerId],
    );
    return ids;
  }
  const failed = (eventId: string): Attempt => ({
    ...{ eventId, endpointId, startedAt: new Date(), durationMs: 1, answerStart: null },
    ...{ httpStatus: 503, error: 'http_503', status: 'retrying', nextAttemptMs: 60_000 },
  });
  const succeeded = (eventId: string): Attempt => ({
    ...{ eventId, endpointId, startedAt: new Date(), durationMs: 1, answerStart: null },
    ...{ httpStatus: 200, error: null, status: 'delivered', nextAttemptMs: null },
  });
  async function health() {
    const { rows } = await commands.owner.query(
      `SELECT consecutive_failures AS failures, failing_since IS NOT NULL AS failing, last_failure_error AS error
       FROM webhook_endpoint WHERE id = $1`,
      [endpointId],
    );
    return rows[0];
  }

  it('counts each failed attempt once, however many processes record at the same moment', async () => {
    const ids = await write(LINES * EACH);
    await Promise.all(
      Array.from({ length: LINES }, async (_, line) => {
        for (let i = 0; i < EACH; i++)
          await recordAttempts(commands.context, [failed(ids[line * EACH + i] as string)]);
      }),
    );
    assert.deepEqual(await health(), { failures: LINES * EACH, failing: true, error: 'http_503' });
  });

  it('counts only the failures after the last success of those that it records together', async () => {
    const [a = '', b = '', c = '', d = ''] = await write(4);
    await recordAttempts(commands.context, [failed(a)]);
    await recordAttempts(commands.context, [failed(b), succeeded(c), failed(d)]);
    assert.deepEqual(await health(), { failures: 1, failing: true, error: 'http_503' });
    await recordAttempts(commands.context, [succeeded(d)]);
    assert.deepEqual(await health(), { failures: 0, failing: false, error: 'http_503' });
  });
});
