import assert from 'node:assert/strict';
import { query } from '../../platform/db/sql.ts';
import { createCard } from '../support/cards.ts';
import { assertBalance, assertLedgerClean, fundedPartner, priceOf } from '../support/money.ts';
import { connectTo, ownerUrlOf } from '../support/postgres.ts';
import { startTestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';

const CARDS = 16;
const CARD_CENTS = 10_000;

describe('issuances of an account whose rows somebody has locked', () => {
  it("occupy few of the worker's connections, delay nobody, and continue when the lock is released", async () => {
    // Through the queue, because the API's own worker uses the API's connections.
    const config = { cardCreationWaitMs: 60_000, logLevel: 'error' as const };
    await using stack = await startTestStack(config, { hosted: false });
    await using holder = await connectTo(ownerUrlOf(stack.config.databaseUrl));
    await using watcher = await connectTo(ownerUrlOf(stack.config.databaseUrl));
    /** How many of the worker's connections wait for a row that somebody has locked. */
    const waiting = async () => {
      const { rowCount } = await watcher.query(
        `SELECT FROM pg_stat_activity WHERE datname = current_database()
         AND application_name = 'card-issuing-worker' AND wait_event IN ('transactionid', 'tuple')`,
      );
      return rowCount ?? 0;
    };
    const [locked, other] = await Promise.all([fundedPartner(stack), fundedPartner(stack)]);
    await holder.query('BEGIN');
    await holder.query('SELECT FROM account_usage WHERE partner_id = $1 FOR UPDATE', [locked.id]);
    const answers = Promise.all(
      Array.from({ length: CARDS }, () => createCard(locked, { amount: CARD_CENTS }, { mode: 'live' })),
    );
    await until('they wait', async () => (await waiting()) >= 4);
    for (let made = 0; made < 5; made++) {
      const { status, text } = await createCard(other, { amount: CARD_CENTS }, { mode: 'live' });
      assert.equal(status, 201, text);
      assert.ok((await waiting()) <= 4);
    }
    assert.ok((await waiting()) > 0, 'nobody waited any more');
    await holder.query('ROLLBACK');
    for (const { status, text } of await answers) assert.equal(status, 201, text);

    await until('all are over', async () => {
      const pending = `SELECT FROM card WHERE status = 'funding_pending'`;
      return (await query(stack.orm.em.fork(), pending)).length === 0;
    });
    const spentCents = CARDS * priceOf(CARD_CENTS);
    await assertBalance(stack, locked, 'live', { spentCents, heldCents: 0 });
    await assertLedgerClean(stack);
  });
});
