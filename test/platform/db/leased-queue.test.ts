import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { takeLateAnswers } from '../../../cards/late-answers.ts';
import { takeUnconfirmedCards } from '../../../cards/network-card.ts';
import { takeUnnotifiedDeposits } from '../../../deposits/watched-deposits.ts';
import { takeDueObjects, takePaymentsToRead } from '../../../issuers/inbox/inbox.ts';
import { takeDueTrueUps } from '../../../issuers/true-ups/true-ups.ts';
import { takeDeliveries } from '../../../webhooks/deliveries.ts';
import { takeUnnotifiedDeliveries } from '../../../webhooks/retries.ts';
import { openCommands, type TestCommands } from '../../support/commands/open-commands.ts';

const MINUTE = 60;
const DAY = 24 * 60 * MINUTE;

describe('a queue with leases', () => {
  let commands: TestCommands;
  let partnerId: string;
  let cardId: string;
  before(async () => {
    commands = await openCommands();
    partnerId = await commands.createFundedPartner(10_000);
    cardId = await commands.createActiveCard(partnerId, 'live', 1_000);
    await commands.owner.query(`UPDATE card SET network_card_id = 'its id there' WHERE id = $1`, [cardId]);
  });
  after(() => commands.close());

  interface Queue {
    name: string;
    longestSeconds: number;
    add: (id: string) => Promise<void>;
    /** Of the row with id $1: due in $2 seconds. */
    setDue: string;
    take: () => Promise<{ id: string }[]>;
  }
  const queues: Queue[] = [
    {
      name: 'what has changed at the network',
      longestSeconds: 5 * MINUTE,
      add: async (id: string) => {
        await commands.owner.query(
          `INSERT INTO network_inbox (id, network, kind) VALUES ($1, 'lithic', 'payment')`,
          [id],
        );
      },
      setDue: `UPDATE network_inbox SET retry_after = now() + $2 * interval '1 second' WHERE id = $1`,
      take: () => takeDueObjects(commands.context.orm, { network: 'lithic', limit: 10 }),
    },
    {
      name: 'operations that have ended',
      longestSeconds: DAY,
      add: async (id: string) => {
        await commands.owner.query(`INSERT INTO late_answer (id, kind) VALUES ($1, 'card')`, [id]);
      },
      setDue: `UPDATE late_answer SET retry_after = now() + $2 * interval '1 second' WHERE id = $1`,
      take: () => takeLateAnswers(commands.context.orm, { limit: 10 }),
    },
    {
      name: 'what the network has to move',
      longestSeconds: 10 * MINUTE,
      add: async (id: string) => {
        await commands.owner.query(
          `INSERT INTO true_up (id, direction, transfer_id, operation_id, partner_id, mode, card_id, amount_cents, token)
           VALUES ($1, 'to_card', $2, 'its operation', $3, 'live', $4, 1, $1)`,
          [id, randomUUID(), partnerId, cardId],
        );
      },
      setDue: `UPDATE true_up SET retry_after = now() + $2 * interval '1 second' WHERE id = $1`,
      take: () => takeDueTrueUps(commands.context.orm, { limit: 10 }),
    },
    {
      name: 'payments that are read again',
      longestSeconds: 2 * DAY,
      add: async (id: string) => {
        await commands.owner.query(
          `INSERT INTO payment (mode, payment_id, partner_id, card_id, said, requests, cleared_cents, is_expired)
           VALUES ('live', $1, $2, $3, '{"unreadable": []}', '[]', 0, false)`,
          [id, partnerId, cardId],
        );
      },
      setDue: `UPDATE payment SET read_after = now() + $2 * interval '1 second' WHERE payment_id = $1`,
      take: async () => {
        const taken = await takePaymentsToRead(commands.context.orm, { network: 'increase', limit: 10 });
        return taken.map(({ payment_id: id }) => ({ id }));
      },
    },
    {
      name: 'cards that are looked up',
      longestSeconds: DAY,
      add: async (id: string) => {
        await commands.owner.query('UPDATE card SET network_card_id = $1, last4 = NULL WHERE id = $2', [
          id,
          cardId,
        ]);
      },
      setDue: `UPDATE card SET look_up_after = now() + $2 * interval '1 second' WHERE network_card_id = $1`,
      take: async () => {
        const taken = await takeUnconfirmedCards(commands.context.orm, 10, 10 * MINUTE * 1_000);
        const cards = await commands.owner.query<{ id: string }>(
          'SELECT network_card_id AS id FROM card WHERE id = ANY ($1)',
          [taken],
        );
        return cards.rows;
      },
    },
    {
      name: 'events to send',
      longestSeconds: 5 * MINUTE,
      add: async (id: string) => {
        await commands.owner.query(
          `INSERT INTO delivery (event_id, endpoint_id, partner_id, mode, status, type)
           VALUES ($1, 'none', $2, 'live', 'pending', 'ping')`,
          [id, partnerId],
        );
      },
      setDue: `UPDATE delivery SET lease_expires_at = now() + $2 * interval '1 second' WHERE event_id = $1`,
      take: async () => {
        const slots = { freeSlots: {}, initialSlots: 8, freeReplaySlots: {}, replaySlots: 4 };
        const taken = await takeDeliveries(commands.context.orm, {
          ...slots,
          limit: 10,
          leaseMs: 50_000,
          after: null,
        });
        return taken.map(({ event_id: id }) => ({ id }));
      },
    },
    {
      name: 'events of which a workflow has to hear',
      longestSeconds: 5 * MINUTE,
      add: async (id: string) => {
        await commands.owner.query(
          `INSERT INTO delivery (event_id, endpoint_id, partner_id, mode, status, type, workflow)
           VALUES ($1, 'none', $2, 'live', 'given_up', 'ping', 'untold')`,
          [id, partnerId],
        );
      },
      setDue: `UPDATE delivery SET lease_expires_at = now() + $2 * interval '1 second' WHERE event_id = $1`,
      take: async () => {
        const { unnotified } = await takeUnnotifiedDeliveries(commands.context.orm, null);
        return unnotified.map(({ event_id: id }) => ({ id }));
      },
    },
    {
      name: 'deposits of which a workflow has to hear',
      longestSeconds: 2 * MINUTE,
      add: async (id: string) => {
        await commands.owner.query(
          `INSERT INTO deposit (id, partner_id, mode, network, contract_address, address_index, address, address_hash,
             amount_cents, created_at, expires_at)
           VALUES ($1, $2, 'live', 'nile', '', 1, '', decode(repeat('00', 20), 'hex'), 1, now(), now())`,
          [id, partnerId],
        );
      },
      setDue: `UPDATE deposit SET lease_expires_at = now() + $2 * interval '1 second' WHERE id = $1`,
      take: async () => (await takeUnnotifiedDeposits(commands.context.orm, null)).unnotified,
    },
  ];
  for (const { name, longestSeconds, add, setDue, take } of queues) {
    it(`has due what lies further ahead than anything is put off, for the clock was set back: ${name}`, async () => {
      const id = randomUUID();
      await add(id);
      const taken: boolean[] = [];
      for (const aheadSeconds of [-MINUTE, MINUTE, longestSeconds - MINUTE, longestSeconds + MINUTE]) {
        await commands.owner.query(setDue, [id, aheadSeconds]);
        taken.push((await take()).some((row) => row.id === id));
      }
      assert.deepEqual(taken, [true, false, false, true]);
      assert.deepEqual(await take(), [], 'it is leased by the clock as it is now');
    });
  }

  it('never has due what waits for nothing any more', async () => {
    await commands.owner.query(
      `INSERT INTO late_answer (id, kind, retry_after) VALUES ('dismissed', 'card', 'infinity')`,
    );
    assert.deepEqual(await takeLateAnswers(commands.context.orm, { limit: 10 }), []);
  });
});
