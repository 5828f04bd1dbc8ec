import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { pino } from 'pino';
import { NOWHERE } from '../../domain/payment.ts';
import { checkBooks } from '../../exports/check-books.ts';
import { checkLedger } from '../../ledger/check-ledger.ts';
import { findDueAuthorizations, readExpiryLag } from '../../payments/expire.ts';
import { createExpiry } from '../../payments/jobs.ts';
import { simulateOnCard } from '../../payments/simulate.ts';
import { takeMessages } from '../../payments/take-messages.ts';
import { transaction } from '../../platform/db/transaction.ts';
import { keyedRequest, openCommands, type TestCommands } from '../support/commands/open-commands.ts';

const mode = 'test';

describe('authorizations that nobody clears', () => {
  let commands: TestCommands;
  let partnerId: string;
  let cardId: string;
  let nowMs = 0;
  let logged: string[];
  let expire: () => Promise<void>;
  before(async () => {
    commands = await openCommands();
    const logger = pino({}, { write: (line: string) => logged.push(line) });
    const pass = createExpiry({ orm: commands.context.orm, logger }, () => nowMs);
    expire = () => pass(new AbortController().signal);
  });
  beforeEach(async () => {
    logged = [];
    partnerId = await commands.createFundedPartner(100_000);
    cardId = await commands.createActiveCard(partnerId, mode, 10_000);
  });
  after(async () => {
    const em = commands.context.orm.em.fork();
    assert.deepEqual([await checkLedger(em), await checkBooks(em)], [[], []]);
    await commands.close();
  });

  async function authorize(count: number, on = cardId, of = partnerId): Promise<string[]> {
    const ids = [];
    for (let made = 0; made < count; made++) {
      const request = keyedRequest('authorize_card', on, {}, { partnerId: of, mode });
      const asked = { type: 'authorization', amountCents: 10, isFinal: true } as const;
      const { response } = await simulateOnCard(commands.context, request, {
        message: { id: randomUUID(), ...asked, merchant: NOWHERE },
        networkPaymentId: null,
        ttlMs: 86_400_000,
      });
      ids.push(JSON.parse(response.body).id as string);
    }
    return ids;
  }
  const otherCard = () => commands.createActiveCard(partnerId, mode, 1_000);
  const makeDue = (ids: string[]) =>
    commands.owner.query(
      `UPDATE card_authorization SET expires_at = now() - interval '1 hour' WHERE id = ANY ($1)`,
      [ids],
    );
  const pending = async (ids: string[]): Promise<string[]> => {
    const { rows } = await commands.owner.query<{ id: string }>(
      `SELECT id FROM card_authorization WHERE status = 'pending' AND id = ANY ($1) ORDER BY id`,
      [ids],
    );
    return rows.map(({ id }) => id);
  };
  const money = async () => {
    const { rows } = await commands.owner.query<{ posted: string; held: string }>(
      'SELECT posted, held FROM ledger.account WHERE card_id = $1',
      [cardId],
    );
    return rows.map(({ posted, held }) => [Number(posted), Number(posted) - Number(held)])[0];
  };
  const events = async () => {
    const { rows } = await commands.owner.query<{ body: string }>(
      `SELECT body FROM event WHERE partner_id = $1 AND type = 'card.authorization.updated' ORDER BY id`,
      [partnerId],
    );
    return rows.map(({ body }) => JSON.parse(body).data);
  };

  it('expire when their time is over, and not before', async () => {
    const [due = '', later = ''] = await authorize(2);
    await makeDue([due]);
    await expire();
    assert.deepEqual(await pending([due, later]), [later]);
    assert.deepEqual(await money(), [10_000, 9_990]);
    const [{ authorization, card }, ...others] = await events();
    assert.deepEqual(others, []);
    const { id, status, amount, held_amount: held } = authorization;
    assert.deepEqual([id, status, amount, held], [due, 'expired', 10, 0]);
    assert.equal(card.available_balance, 9_990);
  });

  it('expire after an outage of the workers, many of one account together, each with its event', async () => {
    const ids = [...(await authorize(101)), ...(await authorize(20, await otherCard()))];
    await makeDue(ids);
    assert.ok((await readExpiryLag(commands.context.orm.em.fork())) > 3_000);
    await expire();
    assert.deepEqual(await money(), [10_000, 10_000]);
    const told = (await events()).map(({ authorization }) => authorization.id);
    assert.deepEqual(told.sort(), ids.toSorted());
    assert.equal(await readExpiryLag(commands.context.orm.em.fork()), 0);
  });

  it('delay no others on a card that is locked, for a second, or that can not be written, for a minute', async () => {
    const locked = await authorize(1);
    const free = await authorize(3, await otherCard());
    const broken = await authorize(1, await otherCard());
    // Its hold is not what its row says, so the ledger refuses to release it.
    await commands.owner.query('UPDATE card_authorization SET holds = 7 WHERE id = ANY ($1)', [broken]);
    await makeDue([...locked, ...broken, ...free]);
    const all = [...locked, ...broken, ...free];
    {
      await using locker = await commands.connect();
      await locker.query('BEGIN');
      await locker.query('SELECT FROM card WHERE id = $1 FOR UPDATE', [cardId]);
      await expire();
      assert.deepEqual(await pending(all), [...locked, ...broken].sort());
    }
    assert.equal(logged.filter((line) => line.includes('could not expire an authorization')).length, 1);
    await expire();
    assert.deepEqual(await pending(all), [...locked, ...broken].sort());
    nowMs += 1_000;
    await expire();
    assert.deepEqual(await pending(all), broken);
    await commands.owner.query('UPDATE card_authorization SET holds = 1 WHERE id = ANY ($1)', [broken]);
    nowMs += 58_999;
    await expire();
    assert.deepEqual(await pending(all), broken);
    nowMs += 1;
    await expire();
    assert.deepEqual(await pending(all), []);
  });

  it('wait for an element that nobody has decided, which delays no others, and end once it is', async () => {
    const live = { partnerId, mode: 'live' as const };
    const on = await commands.createActiveCard(partnerId, 'live', 1_000);
    const paymentId = randomUUID();
    const element = randomUUID();
    const written = { what: 'clearing', currency: 'EUR', amount: 10 };
    for (const message of [
      { id: paymentId, type: 'authorization' as const, amountCents: 10 },
      { id: element, type: 'unreadable' as const, amountCents: null, written },
    ]) {
      const simulated = {
        message: { ...message, isFinal: false, merchant: NOWHERE },
        networkPaymentId: paymentId,
        ttlMs: 86_400_000,
      };
      await transaction(commands.context.orm, (tx) =>
        takeMessages(tx, [{ ...live, cardId: on, simulated, recorded: null }]),
      );
    }
    const payment = async () =>
      (await commands.owner.query('SELECT xmin, * FROM payment WHERE payment_id = $1', [paymentId])).rows[0];
    const before = await payment();
    const ids = [before.authorization_id as string, ...(await authorize(2))];
    await makeDue(ids);
    const em = commands.context.orm.em.fork();
    const due = await findDueAuthorizations(em, { except: [], limit: 3 });
    assert.deepEqual(due.map(({ id }) => id).sort(), ids.slice(1));
    await expire();
    assert.deepEqual(await payment(), before);
    assert.deepEqual([await pending(ids), await readExpiryLag(em)], [ids.slice(0, 1), 0]);
    await commands.owner.query(
      `INSERT INTO payment_element (id, means, payment_id, requested_by, approved)
       VALUES ($1, 'nothing', $2, 'somebody', true)`,
      [element, paymentId],
    );
    await expire();
    assert.deepEqual(await pending(ids), []);
  });

  it('of one account, however many, do not keep those of another waiting', async () => {
    const neighbour = await commands.createFundedPartner(100_000);
    const [theirs = ''] = await authorize(
      1,
      await commands.createActiveCard(neighbour, mode, 1_000),
      neighbour,
    );
    const ids = [...(await authorize(3)), theirs];
    await makeDue(ids);
    await commands.owner.query('UPDATE card_authorization SET expires_at = now() WHERE id = $1', [theirs]);
    const found = await findDueAuthorizations(commands.context.orm.em.fork(), { except: [], limit: 2 });
    assert.ok(found.some(({ id }) => id === theirs));
    await expire();
    assert.deepEqual(await pending(ids), []);
  });
});
