import assert from 'node:assert/strict';
import type { Orm } from '../../../db/orm.ts';
import { query } from '../../../db/sql.ts';
import { claimOf } from '../claims.ts';
import { untilHolds } from '../until.ts';
import { lastAudit } from './operate.ts';
import type { Resolving } from './resolving.ts';

/**
 * Tests for operations before their deadline.
 * @param pending returns the id of a pending one
 * @param wrong wrong usage besides what is wrong for every kind
 */
export function testBeforeDeadline(
  resolving: Resolving,
  pending: () => string,
  wrong: readonly string[][] = [],
): void {
  const { what, operate, resolve, show, attention } = resolving;

  it('refuses to resolve, and changes nothing', async () => {
    const audited = await lastAudit(operate);
    for (const outcome of [what.success, '--failed']) {
      const { code, out, err } = await resolve(pending(), outcome);
      assert.deepEqual({ code, out }, { code: 1, out: '' });
      assert.match(err, /is not past its deadline, \d{4}-.*Z/);
    }
    assert.deepEqual(await lastAudit(operate), audited);
    assert.equal((await show(pending())).json.status, what.pending);
    assert.deepEqual(await attention(), []);
  });

  for (const args of [
    ['resolve', what.unknownId, '--reason', 'r'],
    ['resolve', what.unknownId, what.success],
    ['resolve', what.unknownId, what.success, '--failed', '--reason', 'r'],
    ['resolve', what.success, '--reason', 'r'],
    ['show'],
    ...wrong,
  ]) {
    it(`rejects "${what.command} ${args.join(' ')}" as wrong usage`, async () => {
      const { code, out } = await operate(what.command, ...args);
      assert.deepEqual({ code, out }, { code: 2, out: '' });
    });
  }
}

/** Tests for operations that pass their deadline soon. */
export function testPastDeadline(resolving: Resolving): void {
  const { what, operate, resolve, show, attention, createOverdue, held, terminate } = resolving;

  it('is listed in attention list with the command that resolves it', async () => {
    const id = await createOverdue();
    // It is listed before its workflow has noticed, with another reason.
    await untilHolds(async () => {
      const { json: shown } = await show(id);
      assert.equal(shown.status, what.pending);
      assert.deepEqual(await attention(), [
        {
          kind: what.kind,
          id,
          since: shown.overdue_since,
          reason: `the network has not said ${what.waitsFor}`,
          partner_id: shown.partner_id,
          partner_name: shown.partner_name,
          command: `npm run operator -- ${what.command} resolve ${id} ${what.success} --reason "…"`,
          or_command: `npm run operator -- ${what.command} resolve ${id} --failed --reason "…"`,
          workflow_id: shown.workflow_id,
        },
      ]);
    });
    await resolve(id, '--failed');
    assert.deepEqual(await attention(), []);
  });

  it('starts the workflow again if it has ended', async () => {
    for (const [outcome, status] of [
      ['--failed', 'failed'],
      [what.success, what.succeeded],
    ] as const) {
      const id = await createOverdue();
      await terminate(id);
      const { code, json } = await resolve(id, outcome);
      assert.deepEqual([code, json.status], [0, status]);
    }
    assert.equal(await held(), 0);
    assert.deepEqual((await operate('ledger', 'check')).json, []);
  });
}

/** Asserts that `show` and `resolve` refuse an unknown id. */
export async function assertUnknownIsSaid({ what, show, resolve }: Resolving): Promise<void> {
  for (const answer of [await show(what.unknownId), await resolve(what.unknownId, what.success)]) {
    assert.deepEqual([answer.code, answer.out], [1, '']);
    assert.match(answer.err, what.unknown(what.unknownId));
  }
}

/** Asserts that an overdue operation is resolved although its workflow has not noticed, or is gone. */
export async function assertResolvedUnnoticed(
  resolving: Resolving,
  createPending: () => Promise<string>,
): Promise<void> {
  const { age, resolve, terminate, show } = resolving;
  const [running, lost] = [await createPending(), await createPending()];
  await terminate(lost);
  assert.equal((await show(lost)).json.workflow_status, 'terminated');
  for (const id of [running, lost]) {
    await age(id);
    const { code, json, err } = await resolve(id, '--failed');
    assert.deepEqual([code, json?.status], [0, 'failed'], err);
  }
}

/** Asserts that the workers' deadline counts, not an operator's shorter one. */
export async function assertWorkersDeadlineCounts(resolving: Resolving, id: string): Promise<void> {
  const { what, later, show, resolve, age } = resolving;
  const early = await later(what.command, 'resolve', id, '--failed', '--reason', 'r');
  assert.deepEqual([early.code, early.out], [1, '']);
  assert.match(early.err, /according to the worker's configuration it is not past its deadline/);
  const { json: shown } = await show(id);
  assert.deepEqual([shown.status, shown.overdue_since], [what.pending, null]);
  await age(id);
  assert.equal((await resolve(id, what.success)).code, 0);
}

/** Asserts that nothing is left of a failed operation whose request had no response yet. */
export async function assertFailedUnanswered(resolving: Resolving, orm: Orm): Promise<void> {
  const { createOverdue, resolve, show, held } = resolving;
  const id = await createOverdue();
  await query(
    orm.em.fork(),
    'UPDATE idempotency_claim SET response_status = NULL, response_body = NULL WHERE id = $1',
    [await claimOf({ orm }, id)],
  );
  const { code, json } = await resolve(id, '--failed');
  assert.deepEqual([code, json.id, json.status, json.failure_code], [0, id, 'failed', 'provider_declined']);
  assert.equal((await show(id)).code, 1);
  assert.equal(await held(), 0);
}
