import assert from 'node:assert/strict';
import pg from 'pg';
import { readExpiryLag } from '../../../commands/authorizations/expire-due.ts';
import { type AuthorizedCard, authorizedCard, onAuthorization } from '../../support/authorizations.ts';
import { assertLedgerClean, fundedPartner } from '../../support/money.ts';
import { asOwner, ownerUrlOf } from '../../support/postgres.ts';
import { startTestStack, type TestPartner, type TestStack } from '../../support/stack.ts';
import { until } from '../../support/until.ts';

describe('authorizations that nobody clears', function () {
  this.timeout(120_000);
  let stack: TestStack;
  let partner: TestPartner;
  let card: AuthorizedCard;
  before(async () => {
    stack = await startTestStack();
    partner = await fundedPartner(stack);
  });
  beforeEach(async () => {
    card = await authorizedCard(partner, 10_000);
  });
  after(async () => {
    await assertLedgerClean(stack);
    await stack.stop();
  });

  async function authorize(count: number, on = card): Promise<string[]> {
    const answers = await Promise.all(Array.from({ length: count }, () => on.authorize(10)));
    return answers.map(({ json }) => json.id);
  }
  const makeDue = (ids: string[]) =>
    asOwner(
      stack,
      `UPDATE card_authorization SET expires_at = now() - interval '1 hour' WHERE id = ANY ($1)`,
      [ids],
    );
  const countPending = async (ids: string[]) => {
    const rows = await asOwner(
      stack,
      `SELECT FROM card_authorization WHERE status = 'pending' AND id = ANY ($1)`,
      [ids],
    );
    return rows.length;
  };
  const allExpired = (ids: string[]) =>
    until('they have expired', async () => (await countPending(ids)) === 0);

  it('expire when their time is over, and not before', async () => {
    const [due = '', later = ''] = await authorize(2);
    await makeDue([due]);
    await allExpired([due]);
    const expired = await onAuthorization(partner, due).read();
    assert.deepEqual([expired.status, expired.amount, expired.held_amount], ['expired', 10, 0]);
    assert.equal((await onAuthorization(partner, later).read()).status, 'pending');
    assert.deepEqual(await card.money(), [10_000, 9_990]);
    const { data } = (await partner.call('GET', '/events?limit=1&type=card.authorization.updated')).json;
    assert.deepEqual(data[0].data.authorization, expired);
    assert.deepEqual(data[0].data.card.available_balance, 9_990);
  });

  it('expire after an outage of the workers, many of one account together, each with its event', async () => {
    await stack.stopWorker();
    const ids = [...(await authorize(120)), ...(await authorize(120, await authorizedCard(partner, 5_000)))];
    await makeDue(ids);
    assert.ok((await readExpiryLag(stack.orm.em.fork())) > 3_000);
    await stack.startWorker();
    await allExpired(ids);
    assert.deepEqual(await card.money(), [10_000, 10_000]);
    const told = await asOwner<{ id: string }>(
      stack,
      `SELECT body::jsonb #>> '{data,authorization,id}' AS id FROM event WHERE type = 'card.authorization.updated'
         AND body::jsonb #>> '{data,authorization,id}' = ANY ($1)`,
      [ids],
    );
    assert.deepEqual(told.map(({ id }) => id).sort(), ids.toSorted());
    assert.equal(await readExpiryLag(stack.orm.em.fork()), 0);
  });

  it('on a card that is locked, or that can not be written, delay no others', async () => {
    const other = await authorizedCard(partner, 1_000);
    const [locked] = [await authorize(1)];
    const free = await authorize(3, other);
    const broken = await authorize(1, await authorizedCard(partner, 1_000));
    // Its hold is not what its row says, so the ledger refuses to release it.
    await asOwner(stack, `UPDATE card_authorization SET holds = 7 WHERE id = ANY ($1)`, [broken]);
    const locker = new pg.Client(ownerUrlOf(stack.config.databaseUrl));
    await locker.connect();
    try {
      await locker.query('BEGIN');
      await locker.query('SELECT FROM card WHERE id = $1 FOR UPDATE', [card.id]);
      await makeDue([...locked, ...broken, ...free]);
      await allExpired(free);
      assert.equal(await countPending([...locked, ...broken]), 2);
    } finally {
      await locker.end();
    }
    await allExpired(locked);
    assert.ok(stack.logLines.some((line) => line.includes('could not expire an authorization')));
    await asOwner(
      stack,
      `UPDATE card_authorization SET holds = 1, expires_at = now() + interval '1 day' WHERE id = ANY ($1)`,
      [broken],
    );
  });

  it('on a blocked card release what they hold to the prepaid balance', async () => {
    const ids = await authorize(2);
    await card.change('block');
    assert.deepEqual(await card.money(), [20, 0]);
    await makeDue(ids);
    await allExpired(ids);
    assert.deepEqual(await card.money(), [0, 0]);
    const { data } = (await partner.call('GET', '/balance/transactions?limit=2')).json;
    assert.deepEqual(
      data.map(({ type, amount, source }: { type: string; amount: number; source: { id: string } }) => [
        type,
        amount,
        source.id,
      ]),
      [
        ['card_release', 10, card.id],
        ['card_release', 10, card.id],
      ],
    );
  });

  it('of one account, however many, do not keep those of another waiting', async () => {
    await stack.stopWorker();
    const neighbour = await fundedPartner(stack);
    const theirs = await authorizedCard(neighbour, 1_000);
    const many = await authorize(450);
    const [one = ''] = await authorize(1, theirs);
    await makeDue([...many, one]);
    // The neighbour's is the youngest.
    await asOwner(stack, `UPDATE card_authorization SET expires_at = now() WHERE id = $1`, [one]);
    await stack.startWorker();
    await allExpired([one]);
    await allExpired(many);
  });
});
