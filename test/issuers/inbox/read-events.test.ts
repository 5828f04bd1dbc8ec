import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { pino } from 'pino';
import { readReport } from '../../../domain/network-transaction.ts';
import { parseJson } from '../../../domain/parse-json.ts';
import {
  type CardNetwork,
  CardNetworkUnavailable,
  type NetworkMessage,
} from '../../../issuers/card-network.ts';
import { keepEvent, takeDueEvents } from '../../../issuers/inbox/kept-events.ts';
import { startReadingEvents } from '../../../issuers/inbox/read-events-jobs.ts';
import { createSettlementQueue } from '../../../payments/settlement-queue.ts';
import { WORKER_ROLE } from '../../../platform/db/login.ts';
import type { Repetition } from '../../../platform/process/repeat.ts';
import { networkIdOf, networkTransaction } from '../../support/api/network-events.ts';
import { createCard } from '../../support/cards.ts';
import { readMetrics } from '../../support/metrics.ts';
import { assertLedgerClean, fundedPartner } from '../../support/money.ts';
import { environmentOf, operateIn } from '../../support/operator/operate.ts';
import { asOwner } from '../../support/postgres.ts';
import { startTestStack, type TestPartner, type TestStack } from '../../support/stack.ts';
import { until } from '../../support/until.ts';

const live = { mode: 'live' } as const;
const NETWORK = 'elsewhere';

describe("the card network's events that were kept", () => {
  let stack: TestStack;
  let partner: TestPartner;
  let cardId: string;
  let networkCardId: string;
  let running: Pick<Repetition, 'stop'>[] = [];
  /** How the network answers about an event, by what the event says. */
  let faults: Record<string, () => Promise<void>>;
  let asked: string[];

  before(async () => {
    stack = await startTestStack();
    partner = await fundedPartner(stack, 100_000);
  });
  beforeEach(async () => {
    cardId = (await createCard(partner, { amount: 1_000 }, live)).json.id;
    networkCardId = await networkIdOf(stack, cardId);
    faults = {};
    asked = [];
  });
  afterEach(async () => {
    for (const one of running) await one.stop();
    running = [];
    await asOwner(stack, 'DELETE FROM network_event', []);
  });
  after(async () => {
    await assertLedgerClean(stack);
    await stack.stop();
  });

  /** A network that has the objects its events are about. */
  async function readEvent(body: Uint8Array): Promise<NetworkMessage[]> {
    const { about, fault = '' } = parseJson(body) as { about: object[]; fault?: string };
    asked.push(fault);
    await faults[fault]?.();
    return about.map((object): NetworkMessage => {
      if ('subject' in object) return { type: 'outcome', ...(object as { subject: 'card'; token: string }) };
      const transaction = readReport(object);
      assert.ok(transaction);
      return { type: 'transaction', body: Buffer.from(JSON.stringify(object)), transaction };
    });
  }
  const start = () => {
    const { orm, client, config } = stack;
    const one = startReadingEvents({
      orm,
      ring: stack.operator.ring,
      direct: { databaseUrl: config.databaseUrl, role: WORKER_ROLE },
      client,
      liveNetwork: { readEvent } as Partial<CardNetwork> as CardNetwork,
      cardNetwork: NETWORK,
      settlements: createSettlementQueue(orm, () => {}),
      authorizationTtlMs: 60_000,
      eventsWritten: () => {},
      logger: pino({ level: 'silent' }),
    });
    running.push(one);
    return one;
  };
  const keep = (about: object[], more: { fault?: string; eventId?: string } = {}) => {
    const { fault, eventId = randomUUID() } = more;
    const body = Buffer.from(JSON.stringify({ about, fault }));
    return keepEvent({ orm: stack.orm, ring: stack.operator.ring }, { network: NETWORK, eventId, body });
  };
  const rows = () =>
    asOwner<{ id: string; status: string; reason: string | null; attempts: number; body: Buffer }>(
      stack,
      'SELECT id, status, reason, attempts, body FROM network_event ORDER BY id',
      [],
    );
  const allDone = () =>
    until('all are done', async () => (await rows()).every(({ status }) => status === 'done'));
  const balance = async () => (await partner.call('GET', `/cards/${cardId}`, live)).json.balance;
  const makeDue = () => asOwner(stack, "UPDATE network_event SET retry_after = '-infinity'", []);

  it('are kept once, sealed, and everything in them is booked', async () => {
    const paid = networkTransaction(networkCardId);
    const both = [
      paid,
      networkTransaction(networkCardId, { amountCents: 50 }),
      { subject: 'card', token: cardId },
    ];
    await Promise.all(Array.from({ length: 5 }, () => keep(both, { eventId: 'e1' })));
    const [row, ...others] = await rows();
    assert.deepEqual(others, []);
    assert.ok(!row?.body.toString('latin1').includes('networkTransactionId'));
    start();
    start();
    await allDone();
    await keep(both, { eventId: 'e1' });
    await keep([paid], { eventId: 'e2' });
    await allDone();
    assert.equal(await balance(), 850);
    assert.deepEqual(
      (await rows()).map(({ attempts }) => attempts),
      [1, 1],
    );
  });

  it('are read at once after the notification', async () => {
    start();
    await until('it listens', async () => {
      const found = await asOwner(
        stack,
        `SELECT FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%network_event_kept%'`,
        [],
      );
      return found.length > 0;
    });
    await keep([networkTransaction(networkCardId)]);
    await allDone();
  });

  it('hold up no others, however many are slow, can not be read, or get no answer', async () => {
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    faults = {
      slow: () => released,
      broken: async () => {
        throw new Error('a field is missing');
      },
      down: async () => {
        throw new CardNetworkUnavailable('no response');
      },
    };
    for (let n = 0; n < 10; n++)
      await keep([networkTransaction(networkCardId, { amountCents: 1 })], { fault: 'slow' });
    for (let n = 0; n < 30; n++) {
      const fault = n % 2 === 0 ? 'broken' : 'down';
      await keep([networkTransaction(networkCardId, { amountCents: 1 })], { fault });
    }
    start();
    await until('each was tried', () => asked.filter((fault) => fault !== '').length >= 40);
    await keep([networkTransaction(networkCardId, { amountCents: 30 })]);
    await until('the last one is booked', async () => (await balance()) === 970);
    release();
    await until('the slow ones are booked', async () => (await balance()) === 960);
    const waiting = (await rows()).filter(({ status }) => status === 'waiting');
    assert.deepEqual(
      Object.entries(Object.groupBy(waiting, ({ reason }) => reason ?? ''))
        .map(([why, all]) => [why, all?.length])
        .sort(),
      [
        ['network_unavailable', 15],
        ['not_readable', 15],
      ],
    );
    faults = {};
    await makeDue();
    await until('all are read in the end', async () =>
      (await rows()).every(({ status }) => status === 'done'),
    );
    assert.equal(await balance(), 1_000 - 30 - 10 - 30);
  });

  it('that a process took and did not finish are taken again when its time is over', async () => {
    await keep([networkTransaction(networkCardId)]);
    const [taken] = await takeDueEvents(stack.orm, { network: NETWORK, limit: 1 });
    assert.equal(taken?.attempts, 1);
    assert.deepEqual(await takeDueEvents(stack.orm, { network: NETWORK, limit: 1 }), []);
    await makeDue();
    start();
    await allDone();
    assert.equal(await balance(), 900);
  });

  it('whose transactions can not be booked are done, and these are kept for themselves', async () => {
    const unknown = networkTransaction(`nobody_${randomUUID()}`);
    await keep([unknown]);
    start();
    await allDone();
    const kept = await asOwner<{ reason: string }>(
      stack,
      'SELECT reason FROM network_message WHERE message_id = $1',
      [unknown.networkTransactionId],
    );
    assert.deepEqual(kept, [{ reason: 'card_unknown' }]);
  });

  it('are refused past their bound, but for those that are known', async () => {
    await keep([networkTransaction(networkCardId)], { eventId: 'known' });
    await asOwner(stack, 'UPDATE network_event SET size_bytes = 64 * 1024 * 1024', []);
    await assert.rejects(keep([]), { code: 'unavailable' });
    await keep([], { eventId: 'known' });
    assert.equal((await rows()).length, 1);
  });

  it('are listed, shown, retried and dismissed by an operator, and need one after ten minutes', async () => {
    faults.broken = async () => {
      throw new Error('a field is missing');
    };
    const paid = networkTransaction(networkCardId);
    await keep([paid], { fault: 'broken', eventId: 'e-broken' });
    start();
    await until('it was tried', async () => (await rows())[0]?.reason === 'not_readable');
    const operate = operateIn(environmentOf(stack.config));
    const json = async (...args: string[]) => (await operate(...args)).json;
    const attention = async () => {
      const items: { kind: string; id: string; reason: string }[] = await json('attention', 'list');
      return items.filter(({ kind }) => kind === 'network_event');
    };
    assert.deepEqual(await attention(), []);
    await asOwner(stack, `UPDATE network_event SET created_at = now() - interval '11 minutes'`, []);
    const [item] = await attention();
    const [listed] = await json('network-event', 'list');
    assert.deepEqual(
      [item?.id, listed.network_event_id, listed.reason],
      [listed.id, 'e-broken', 'not_readable'],
    );
    assert.match(item?.reason ?? '', /can't read it/);
    const shown = await json('network-event', 'show', listed.id);
    assert.equal(shown.body.about[0].networkTransactionId, paid.networkTransactionId);
    await json('network-event', 'dismiss', listed.id, '--reason', 'not ours');
    assert.deepEqual(await attention(), []);
    await keep([paid], { fault: 'broken', eventId: 'e-broken' });
    assert.equal((await rows())[0]?.status, 'dismissed');
    faults = {};
    await json('network-event', 'retry', listed.id);
    await allDone();
    assert.equal(await balance(), 900);
    const again = await operate('network-event', 'retry', listed.id);
    assert.deepEqual([again.code, /is done/.test(again.err)], [1, true]);
  });

  it('are counted by the metrics', async () => {
    await keep([networkTransaction(networkCardId)]);
    await until('one waits', async () => {
      await asOwner(stack, "UPDATE measurement SET due_at = '-infinity' WHERE name = 'network_events'");
      return /^network_events_waiting 1$/m.test(await readMetrics(stack));
    });
  });
});
