import assert from 'node:assert/strict';
import { type Attempt, recordAttempts } from '../../webhooks/deliveries.ts';
import { tellOfFailing } from '../../webhooks/endpoint-events.ts';
import { openCommands, type TestCommands } from '../support/commands/open-commands.ts';
import { lockWaits } from '../support/lock-waits.ts';
import { until } from '../support/until.ts';
import { accountWithEndpoint, insertEvents } from '../support/webhooks/accounts.ts';

const LINES = 8;
const EACH = 40;

describe('the record of webhook attempts', () => {
  let commands: TestCommands;
  let partnerId: string;
  let endpointId: string;

  before(async () => {
    commands = await openCommands();
  });
  after(() => commands.close());
  beforeEach(async () => {
    ({ partnerId, endpointId } = await accountWithEndpoint(commands));
  });

  const write = (count: number) => insertEvents(commands, partnerId, count);
  const attempt = (eventId: string, httpStatus: number, error: string | null): Attempt => {
    const ended = { startedAt: new Date(), durationMs: 1, answerStart: null, isGone: false };
    return { eventId, endpointId, httpStatus, error, ...ended };
  };
  const failed = (eventId: string) => attempt(eventId, 503, 'http_503');
  const succeeded = (eventId: string) => attempt(eventId, 200, null);
  const record = (attempts: Attempt[]) => recordAttempts(commands.context, attempts, [60_000], 4_000);
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
        for (let i = 0; i < EACH; i++) await record([failed(ids[line * EACH + i] as string)]);
      }),
    );
    assert.deepEqual(await health(), { failures: LINES * EACH, failing: true, error: 'http_503' });
  });

  it('counts only the failures after the last success of those that it records together', async () => {
    const [a = '', b = '', c = '', d = ''] = await write(4);
    await record([failed(a)]);
    await record([failed(b), succeeded(c), failed(d)]);
    assert.deepEqual(await health(), { failures: 1, failing: true, error: 'http_503' });
    await record([succeeded(d)]);
    assert.deepEqual(await health(), { failures: 0, failing: false, error: 'http_503' });
  });

  it('records the success of an event that was sent twice before its first attempt was recorded', async () => {
    const [a = '', b = ''] = await write(2);
    await record([failed(a), succeeded(b), succeeded(a), failed(a)]);
    const { rows } = await commands.owner.query(
      'SELECT status, attempt_count FROM delivery WHERE event_id = ANY ($1)',
      [[a, b]],
    );
    const delivered = { status: 'delivered', attempt_count: 1 };
    assert.deepEqual(rows, [delivered, delivered]);
  });

  /** How often the account was told, by the events, which its own endpoint does not get. */
  async function told(): Promise<number> {
    assert.deepEqual((await tellOfFailing(commands.context.orm)).errors, []);
    const { rows } = await commands.owner.query(
      `SELECT count(*)::int AS count FROM event WHERE partner_id = $1 AND type = 'webhook_endpoint.failing'`,
      [partnerId],
    );
    return rows[0].count;
  }

  it('owes the account news of ten failures in a row, even if it records a success with them', async () => {
    const ids = await write(11);
    const ten = ids.slice(0, 10).map(failed);
    await record([...ten, succeeded(ids[10] as string)]);
    assert.equal((await health()).failures, 0);
    assert.equal(await told(), 1);
    assert.equal(await told(), 1, 'once');
  });

  it('owes nothing for nine failures on each side of a success', async () => {
    const ids = await write(19);
    const attempts = ids.map((id, i) => (i === 9 ? succeeded(id) : failed(id)));
    await record(attempts.slice(0, 4));
    await record(attempts.slice(4));
    assert.equal((await health()).failures, 9);
    assert.equal(await told(), 0);
  });

  it('tells the account once for each run of ten failures, however they are recorded', async () => {
    const ids = await write(60);
    const failures = (count: number) => ids.splice(0, count).map(failed);
    const success = () => ids.splice(0, 1).map(succeeded);
    await record(failures(6));
    await record(failures(6));
    assert.equal(await told(), 1);
    await record(failures(12));
    assert.equal(await told(), 1, 'it has not succeeded since');
    await record([...success(), ...failures(10)]);
    assert.equal(await told(), 2);
    await record([...failures(1), ...success(), ...failures(1)]);
    await record(failures(9));
    assert.equal(await told(), 3);
  });

  it('tells the other accounts even if one can not be told yet', async () => {
    const fail = async () => record((await write(10)).map(failed));
    await fail();
    const stuck = partnerId;
    await commands.owner.query(
      `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$;
       CREATE TRIGGER refuse BEFORE INSERT ON event FOR EACH ROW WHEN (new.partner_id = '${stuck}') EXECUTE FUNCTION refuse()`,
    );
    try {
      ({ partnerId, endpointId } = await accountWithEndpoint(commands));
      await fail();
      const { told: count, errors } = await tellOfFailing(commands.context.orm);
      assert.deepEqual([count, errors.length], [1, 1]);
    } finally {
      await commands.owner.query('DROP TRIGGER refuse ON event; DROP FUNCTION refuse()');
    }
    assert.equal(await told(), 1);
    partnerId = stuck;
    assert.equal(await told(), 1, 'it was kept for later');
  });

  const untilItWaits = () => until('it waits', async () => (await lockWaits(commands.databaseUrl)) > 0);

  it('locks deliveries in the order of their events, in whichever order their attempts ended', async () => {
    const [first = '', second = ''] = await write(2);
    await using other = await commands.connect();
    await other.query('BEGIN');
    const lock = (id: string) =>
      other.query('SELECT FROM delivery WHERE event_id = $1 FOR UPDATE NOWAIT', [id]);
    await lock(first);
    const recorded = record([succeeded(second), succeeded(first)]);
    await untilItWaits();
    await lock(second);
    await other.query('COMMIT');
    await recorded;
  });

  it('lets a success end the failures that another process is about to commit', async () => {
    const [a = '', b = '', c = ''] = await write(3);
    await record([succeeded(a)]);
    {
      await using other = await commands.connect();
      // The record of a failure, not yet committed.
      await other.query('BEGIN');
      await other.query(
        'UPDATE webhook_endpoint SET consecutive_failures = 5, failing_since = now() WHERE id = $1',
        [endpointId],
      );
      const recorded = record([succeeded(b)]);
      await untilItWaits();
      await other.query('COMMIT');
      await recorded;
      assert.deepEqual(await health(), { failures: 0, failing: false, error: null });
    }
    await record([failed(c)]);
    assert.equal((await health()).failures, 1);
  });
});
