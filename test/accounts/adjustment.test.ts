import assert from 'node:assert/strict';
import { newId } from '../../platform/crypto/new-id.ts';
import { setAdjustmentLimit } from '../../platform/db/migrate.ts';
import { column } from '../support/column.ts';
import { type Operate, type Outcome, operateIn, operatorEnvironment } from '../support/operator/operate.ts';
import {
  asOwner,
  openOperatorOrm,
  ownerUrlOf,
  secondOperatorUrlOf,
  serviceUrlOf,
} from '../support/postgres.ts';

describe('an adjustment above ADJUSTMENT_APPROVAL_CENTS', () => {
  let env: NodeJS.ProcessEnv;
  let databaseUrl: string;
  let ada: Operate;
  let bob: Operate;
  let partner: string;

  before(async () => {
    env = { ...(await operatorEnvironment()), ADJUSTMENT_APPROVAL_CENTS: '100000' };
    databaseUrl = serviceUrlOf(String(env.DATABASE_URL));
    ada = operateIn({ ...env, OPERATOR: 'ada' });
    bob = operateIn({ ...env, DATABASE_URL: secondOperatorUrlOf(databaseUrl), OPERATOR: 'bob' });
  });
  beforeEach(async () => {
    await asOwner(databaseUrl, 'DELETE FROM adjustment_limit');
    partner = (await ada('partner', 'create', '--name', 'Adjusted')).json.id;
  });

  const adjust = (operate: Operate, amount: number, ...rest: string[]) =>
    operate(
      ...['partner', 'adjust', partner, '--mode', 'live', '--amount', String(amount)],
      ...['--reason', 'wire 7', ...rest],
    );
  const total = async () => (await ada('ledger', 'balance', partner, '--mode', 'live')).json.total;
  const assertRefused = async (asked: Promise<Outcome>, why: RegExp) => {
    const { code, err } = await asked;
    assert.equal(code, 1);
    assert.match(err, why);
  };

  it('is booked at once up to the limit, and waits above it, in both directions', async () => {
    assert.equal((await adjust(ada, 100_000)).json.object, 'balance_adjustment');
    const waiting = await adjust(ada, 100_001);
    assert.equal(waiting.code, 0);
    const login = new URL(String(env.DATABASE_URL)).username;
    assert.deepEqual(waiting.json, {
      id: waiting.json.id,
      object: 'adjustment_request',
      status: 'pending',
      partner_id: partner,
      partner_name: 'Adjusted',
      mode: 'live',
      amount: 100_001,
      reason: 'wire 7',
      key: null,
      requested_by: 'ada',
      requested_login: login,
      decided_by: null,
      decided_login: null,
      decision_reason: null,
      created: waiting.json.created,
      decided: null,
    });
    assert.equal((await adjust(ada, -100_001)).json.status, 'pending');
    assert.equal(await total(), 100_000);
  });

  it('is booked once another operator approves it, however often, and by nobody else', async () => {
    const { id } = (await adjust(ada, 250_000, '--key', 'wire-7')).json;
    await assertRefused(ada('adjustment', 'approve', id), /somebody else has to approve/);
    assert.equal(await total(), 0);

    const results = await Promise.all([1, 2, 3].map(() => bob('adjustment', 'approve', id)));
    for (const { code, json, err } of results) {
      assert.equal(code, 0, err);
      assert.deepEqual([json.status, json.decided_by, json.balance.total], ['approved', 'bob', 250_000]);
    }
    assert.equal(await total(), 250_000);
    const [entry, ...older] = (await ada('audit', 'list')).json;
    assert.deepEqual(
      [entry.action, entry.actor, entry.subject, entry.detail.adjustmentId, entry.detail.requestedBy],
      ['adjustment.approve', 'bob', partner, id, 'ada'],
    );
    assert.equal(older[0].action, 'adjustment.request');
    assert.equal((await bob('adjustment', 'reject', id, '--reason', 'no')).code, 1);
    assert.equal((await ada('ledger', 'check')).code, 0);
  });

  it('is not approved under another name with the login that asked for it', async () => {
    const { id, requested_login: login } = (await adjust(ada, 900_000)).json;
    const other = operateIn({ ...env, OPERATOR: 'bob' });
    const why = new RegExp(`was asked for with this login, ${login}, .* "operator login create"`);
    await assertRefused(other('adjustment', 'approve', id), why);
    assert.equal((await other('adjustment', 'reject', id, '--reason', 'mine')).code, 0);
    assert.equal(await total(), 0);
  });

  it('waits once for each key, and is the same adjustment after the approval', async () => {
    const first = await adjust(ada, 250_000, '--key', 'wire-7');
    const [again, sameTime] = await Promise.all([1, 2].map(() => adjust(bob, 250_000, '--key', 'wire-7')));
    assert.deepEqual([again?.json, sameTime?.json], [first.json, first.json]);
    for (const amount of [250_001, 10])
      await assertRefused(adjust(ada, amount, '--key', 'wire-7'), /already used for a different adjustment/);
    await bob('adjustment', 'approve', first.json.id);
    const booked = await adjust(ada, 250_000, '--key', 'wire-7');
    assert.deepEqual([booked.json.object, booked.json.id], ['balance_adjustment', first.json.id]);
    assert.equal(await total(), 250_000);
  });

  it('is never booked after it was rejected', async () => {
    const { id } = (await adjust(ada, 250_000, '--key', 'wire-7')).json;
    for (let i = 0; i < 2; i++) {
      const { code, json } = await bob('adjustment', 'reject', id, '--reason', 'not ours');
      assert.deepEqual([code, json.status, json.decision_reason], [0, 'rejected', 'not ours']);
    }
    await assertRefused(bob('adjustment', 'approve', id), /was rejected by bob \(not ours\)/);
    await assertRefused(adjust(ada, 250_000, '--key', 'wire-7'), /with a new key/);
    assert.equal(await total(), 0);
  });

  it('is listed, and in attention until it is decided', async () => {
    const { id } = (await adjust(ada, 250_000)).json;
    const rejected = (await adjust(ada, 350_000)).json.id;
    await bob('adjustment', 'reject', rejected, '--reason', 'no');
    const ofPartner = async (...list: string[]) =>
      (await ada(...list)).json.filter((one: { partner_id: string }) => one.partner_id === partner);
    const attention = () => ofPartner('attention', 'list');
    assert.deepEqual(column(await ofPartner('adjustment', 'list'), 'id'), [rejected, id]);
    assert.deepEqual(column(await ofPartner('adjustment', 'list', '--status', 'pending'), 'id'), [id]);
    const [item, ...others] = await attention();
    assert.deepEqual(others, []);
    assert.deepEqual([item.kind, item.id, item.partner_id], ['adjustment', id, partner]);
    assert.equal(item.command, `npm run operator -- adjustment approve ${id}`);
    assert.equal(item.or_command, `npm run operator -- adjustment reject ${id} --reason "…"`);
    await bob('adjustment', 'approve', id);
    assert.deepEqual(await attention(), []);
  });

  it('still waits if the balance does not cover it when it is approved', async () => {
    const { id } = (await adjust(ada, -250_000)).json;
    await assertRefused(bob('adjustment', 'approve', id), /does not cover this debit/);
    assert.equal((await ada('adjustment', 'list')).json[0].status, 'pending');
    for (const unknown of [newId('adj'), 'adj_1']) {
      assert.equal((await bob('adjustment', 'approve', unknown)).code, 1);
      assert.equal((await bob('adjustment', 'reject', unknown, '--reason', 'no')).code, 1);
    }
  });

  it("waits where the database has the limit, even if the command line's is unset", async () => {
    await setAdjustmentLimit(ownerUrlOf(databaseUrl), 5_000);
    await setAdjustmentLimit(ownerUrlOf(databaseUrl), 1_000);
    const unlimited = operateIn({ ...env, ADJUSTMENT_APPROVAL_CENTS: '', OPERATOR: 'eve' });
    assert.equal((await adjust(unlimited, 1_000)).json.object, 'balance_adjustment');
    const { id, object } = (await adjust(unlimited, 1_001)).json;
    assert.equal(object, 'adjustment_request');
    assert.equal((await bob('adjustment', 'approve', id)).code, 0);
    assert.equal(await total(), 2_001);
  });

  it('is refused by the database itself without an approval by somebody else', async () => {
    await setAdjustmentLimit(ownerUrlOf(databaseUrl), 1_000);
    const { id } = (await adjust(ada, 250_000)).json;
    const orm = await openOperatorOrm(databaseUrl);
    const run = (statement: string) => orm.em.fork().execute(statement);
    try {
      const book = (as: string, cents: number) =>
        `INSERT INTO balance_adjustment (id, partner_id, mode, amount_cents, reason)
         VALUES ('${as}', '${partner}', 'live', ${cents}, 'r')`;
      await assert.rejects(run(book(newId('adj'), 1_001)), /needs an approved request/);
      await assert.rejects(run(book(id, -250_000)), /needs an approved request/);
      const approve = `UPDATE adjustment_request SET status = 'approved', decided_by`;
      await assert.rejects(run(`${approve} = 'ada' WHERE id = '${id}'`), /violates check constraint/);
      await assert.rejects(
        run(`${approve} = 'bob' WHERE id = '${id}'`),
        /violates check constraint "adjustment_request_two_logins"/,
      );
      for (const change of [
        'UPDATE adjustment_request SET amount_cents = 1',
        "UPDATE adjustment_request SET requested_by = 'x'",
        "UPDATE adjustment_request SET requested_login = 'x'",
        'DELETE FROM adjustment_limit',
        'UPDATE adjustment_limit SET limit_cents = 9e9',
      ])
        await assert.rejects(run(change), /permission denied/);
      await bob('adjustment', 'reject', id, '--reason', 'no');
      await assert.rejects(run(`${approve} = 'bob' WHERE id = '${id}'`), /was decided before/);
      await assert.rejects(run(book(id, 250_000)), /needs an approved request/);
    } finally {
      await orm.close();
    }
    assert.equal(await total(), 0);
  });
});
