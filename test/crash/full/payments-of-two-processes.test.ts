import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import type { PaymentSnapshot } from '../../../domain/payment.ts';
import { checkBooks } from '../../../exports/check-books.ts';
import { checkLedger } from '../../../ledger/check-ledger.ts';
import { openCommands, type TestCommands } from '../../support/commands/open-commands.ts';
import type { HeardPayment } from '../../support/payments/booking-process.ts';
import { Draws, liveAlone } from '../../support/payments/history.ts';
import { IncreaseIssuer, type Issuer, LithicIssuer, named } from '../../support/payments/issuers.ts';
import { propertyRuns } from '../../support/property-runs.ts';

const HISTORIES = propertyRuns(400);
const BATCH = 200;
const BALANCE_CENTS = 100_000;
const BOOKING = fileURLToPath(new URL('../../support/payments/booking-process.ts', import.meta.url));

/** A payment's life at an issuer, and what its own books say at the end. */
interface History {
  cardId: string;
  paymentId: string;
  issuer: Issuer;
  snapshots: PaymentSnapshot[];
}

describe('payments that two processes book at the same time', () => {
  let commands: TestCommands;
  let processes: ChildProcess[];
  const [numbers] = fc.sample(fc.infiniteStream(fc.nat(1_000_000_000)), 1);
  before(async () => {
    commands = await openCommands();
    processes = await Promise.all([startBooking(), startBooking()]);
  });
  after(async () => {
    for (const one of processes) one.disconnect();
    await Promise.all(processes.map((one) => once(one, 'exit')));
    await commands.close();
  });

  async function startBooking(): Promise<ChildProcess> {
    const child = fork(BOOKING, [commands.databaseUrl]);
    await once(child, 'message');
    return child;
  }
  const book = async (child: ChildProcess, payments: HeardPayment[]) => {
    const booked = once(child, 'message');
    child.send(payments);
    await booked;
  };
  const below = (bound: number): number => numbers?.next().value % bound;
  const shuffled = <T>(items: readonly T[]): T[] =>
    items
      .map((item) => [below(1_000_000), item] as const)
      .sort(([a], [b]) => a - b)
      .map(([, item]) => item);
  const rows = async <Row extends object>(text: string, values: unknown[]) =>
    (await commands.owner.query<Row>(text, values)).rows;

  function live(cardId: string): History {
    const paymentId = randomUUID();
    const issuer = below(2) === 0 ? new LithicIssuer(true) : new IncreaseIssuer('2099-01-01T00:00:00.000Z');
    const draws = new Draws(Array.from({ length: 8 + below(12) }, () => below(1_000_000)));
    const snapshots = liveAlone(issuer, draws).map((read) => named(paymentId, read.snapshot()));
    return { cardId, paymentId, issuer, snapshots };
  }

  it(`come to what the issuer's books say, in ${HISTORIES} histories told in any order, twice, and cut short`, async () => {
    for (let done = 0; done < HISTORIES; done += BATCH) {
      const partnerId = await commands.createFundedPartner(BATCH * BALANCE_CENTS * 2);
      const cardIds: string[] = [];
      for (let card = 0; card < BATCH; card++)
        cardIds.push(await commands.createActiveCard(partnerId, 'live', BALANCE_CENTS));
      const histories = cardIds.map(live);
      const [before] = await rows<{ cents: string }>(MONEY, [partnerId]);
      // Each process hears some of it, in an order of its own; in between, cards are frozen and thawed.
      const heard = () =>
        histories.map(({ cardId, paymentId, snapshots }) => ({
          ...{ cardId, paymentId },
          snapshots: shuffled([...snapshots, ...snapshots]).slice(below(snapshots.length)),
        }));
      const freezeSome = async () => {
        for (const id of cardIds.slice(0, BATCH / 4))
          for (const status of ['frozen', 'active'])
            await rows('UPDATE card SET status = $1 WHERE id = $2', [status, id]);
      };
      await Promise.all([...processes.map((one) => book(one, heard())), freezeSome()]);
      // At last, both hear the newest.
      const newest = histories.map(({ cardId, paymentId, snapshots }) => ({
        ...{ cardId, paymentId },
        snapshots: snapshots.slice(-1),
      }));
      await Promise.all(processes.map((one) => book(one, newest)));

      const held = await rows<{ card_id: string; held: string }>(
        `SELECT card_id, held FROM ledger.account WHERE card_id = ANY($1)`,
        [cardIds],
      );
      for (const { cardId, issuer } of histories)
        assert.equal(
          Number(held.find(({ card_id }) => card_id === cardId)?.held),
          issuer.holdCents,
          `${cardId} holds what its issuer holds`,
        );
      const [after] = await rows<{ cents: string }>(MONEY, [partnerId]);
      const [fees] = await rows<{ cents: string }>(FEES, [partnerId]);
      const movedCents = histories.reduce((sum, { issuer }) => sum + issuer.movedCents, 0);
      assert.equal(Number(before?.cents) - Number(after?.cents), movedCents + Number(fees?.cents));
    }
    const em = commands.context.orm.em.fork();
    assert.deepEqual([await checkLedger(em), await checkBooks(em)], [[], []]);
  });
});

const MONEY = `SELECT sum(posted) AS cents FROM ledger.account
  WHERE partner_id = $1 AND mode = 'live' AND kind IN ('card', 'prepaid')`;
const FEES = `SELECT coalesce(sum((f ->> 'amount')::bigint), 0) AS cents
  FROM card_transaction, jsonb_array_elements(fees) f WHERE partner_id = $1`;
