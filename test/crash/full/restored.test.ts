import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { CardNetwork } from '../../../issuers/card-network.ts';
import { query } from '../../../platform/db/sql.ts';
import { startTestNetwork, type TestNetwork } from '../../support/adapters/simulated-network.ts';
import { changeStatus } from '../../support/card-status.ts';
import { createCard, readCardRow } from '../../support/cards.ts';
import { TEST_TRON } from '../../support/deposits/seed-deposits.ts';
import { assertBalance, assertLedgerClean, fundedPartner, priceOf } from '../../support/money.ts';
import { environmentOf, operateIn } from '../../support/operator/operate.ts';
import { type RestorablePostgres, startRestorablePostgres } from '../../support/restorable-postgres.ts';
import { startTestStack, type TestStack } from '../../support/stack.ts';
import { transfer } from '../../support/transfers.ts';
import { until } from '../../support/until.ts';

const CENTS = 10_000;
/** Of the card that the network has not decided when the moment comes that is restored. */
const PENDING_CENTS = 20_000;

describe("a service database that is restored to an earlier moment than Temporal's", () => {
  let postgres: RestorablePostgres;
  let network: TestNetwork;
  let stack: TestStack;
  before(async () => {
    postgres = await startRestorablePostgres();
    // It belongs to somebody else and has its own database: it remembers what we forget.
    network = await startTestNetwork();
    stack = await startTestStack(
      { databaseUrl: postgres.databaseUrl, tron: TEST_TRON, cardCreationWaitMs: 20_000, logLevel: 'silent' },
      { worker: false },
    );
  });
  after(async () => {
    await stack.stop();
    await network.close();
    await postgres.close();
  });

  it('repeats nothing, and what it has forgotten is joined again or shown to an operator', async () => {
    let isSlow = true;
    const slowly = (real: CardNetwork): CardNetwork => ({
      ...real,
      issueCard: async (request) => {
        const answer = await real.issueCard(request);
        return isSlow && request.amountCents === PENDING_CENTS ? { status: 'accepted' } : answer;
      },
    });
    const startWorker = () =>
      stack.startWorker({
        around: { activities: (same) => same, network: () => slowly(network.network) },
      });
    const operate = operateIn(environmentOf(stack.config));
    const live = { mode: 'live' } as const;
    await startWorker();
    const partner = await fundedPartner(stack);
    const kept = await createCard(partner, { amount: CENTS }, live);
    assert.equal(kept.status, 201, kept.text);
    await postgres.backUp();
    const pending = await createCard(partner, { amount: PENDING_CENTS }, live);
    assert.equal(pending.status, 202, pending.text);
    await postgres.mark('before');

    isSlow = false;
    await until('the network decides', async () => {
      return (await readCardRow(stack, pending.json.id))?.status === 'active';
    });
    const forgottenKey = randomUUID();
    const body = { amount: CENTS, external_ref: randomUUID() };
    const forgotten = await createCard(partner, body, { ...live, idempotencyKey: forgottenKey });
    assert.equal(forgotten.status, 201, forgotten.text);
    const topUp = await transfer('topup', { partner, mode: 'live', cardId: kept.json.id }, CENTS);
    assert.equal(topUp.status, 201, topUp.text);
    const withdrawal = await transfer('withdrawal', { partner, mode: 'live', cardId: kept.json.id }, 100);
    assert.equal(withdrawal.status, 201, withdrawal.text);
    assert.equal((await changeStatus(partner, kept.json.id, 'freeze', live)).status, 200);
    const deposit = await partner.call('POST', '/funding/deposit-address', {
      ...live,
      body: { amount: CENTS },
    });
    assert.equal(deposit.status, 201, deposit.text);
    await until('Temporal knows the deposit', async () => {
      const [row] = await query<{ told: number }>(
        stack.orm.em.fork(),
        'SELECT told_version AS told FROM deposit WHERE id = $1',
        [deposit.json.id],
      );
      return (row?.told ?? 0) > 0;
    });

    await stack.stopWorker();
    await postgres.restore('before');
    await startWorker();

    const reconcile = () => operate('restore', 'reconcile', '--since', '1h');
    const found = await until('Temporal lists them all', async () => {
      const { code, json, err } = await reconcile();
      assert.ok(code === 0 || code === 1, err);
      return json.length >= 5 && json;
    });
    const linesOf = (items: { found: string; kind: string; id: string }[]) =>
      items
        .filter((item) => item.found === 'forgotten')
        .map(({ kind, id }) => `${kind} ${id}`)
        .sort();
    const [change] = found.filter(({ kind }: { kind: string }) => kind === 'change_card_status');
    assert.equal(change?.card_id, kept.json.id);
    assert.deepEqual(linesOf(found), [
      `change_card_status ${change.id}`,
      `create_card ${forgotten.json.id}`,
      `deposit ${deposit.json.id}`,
      `top_up_card ${topUp.json.id}`,
      `withdraw_from_card ${withdrawal.json.id}`,
    ]);
    await until('the pending card is what the network says', async () => {
      return (await readCardRow(stack, pending.json.id))?.status === 'active';
    });
    const spentCents = priceOf(CENTS) + priceOf(PENDING_CENTS);
    await assertBalance(stack, partner, 'live', { spentCents, heldCents: 0 });
    await assertLedgerClean(stack);
    assert.deepEqual(await cardsAtNetwork(), [kept, pending, forgotten].map(({ json }) => json.id).sort());

    const again = await createCard(partner, body, { ...live, idempotencyKey: forgottenKey });
    assert.equal(again.status, 201, again.text);
    assert.notEqual(again.json.id, forgotten.json.id);
    const later = await reconcile();
    assert.equal(later.code, 1);
    assert.deepEqual(linesOf(later.json), linesOf(found));
    assert.equal(later.json.length, 5, 'nothing is started once more');
    await assertLedgerClean(stack);
  });

  async function cardsAtNetwork(): Promise<string[]> {
    const rows = await query<{ token: string }>(
      network.orm.em.fork(),
      'SELECT token FROM simulated_network.card ORDER BY token',
    );
    return rows.map(({ token }) => token);
  }
});
