import assert from 'node:assert/strict';
import { ApiError, type FieldIssue } from '../../domain/api-error.ts';
import { transaction } from '../../platform/db/transaction.ts';
import { type Claim, forgetClaim, renewLease } from '../../requests/claim.ts';
import { openRequest, storeResponse } from '../../requests/response.ts';
import { openCommands, type TestClaim, type TestCommands } from '../support/commands/open-commands.ts';
import { countStatements } from '../support/statements.ts';
import { until } from '../support/until.ts';

const isInsert = (text: string) => text.includes('INSERT INTO idempotency_claim');
const REQUEST = { amount: 1_000, external_ref: 'r', email: 'ada@example.com' };

describe('claimIdempotencyKey', () => {
  let commands: TestCommands;
  let partnerId: string;
  before(async () => {
    commands = await openCommands();
  });
  beforeEach(async () => {
    partnerId = await commands.createFundedPartner(1_000);
  });
  after(() => commands.close());

  const claim = (changes: Partial<TestClaim> = {}) =>
    commands.claimCard({ partnerId, mode: 'test', request: REQUEST, key: 'k', ...changes });
  const idOf = (claimed: Claim) => {
    assert.equal(claimed.outcome, 'claimed');
    return claimed.outcome === 'claimed' ? claimed.claimId : '';
  };
  const answer = (claimId: string, status: number, body: unknown) =>
    transaction(commands.context.orm, (tx) =>
      storeResponse({ tx, ring: commands.context.ring }, claimId, status, body),
    );
  const rejectsWith = (attempt: Promise<unknown>, code: string) =>
    assert.rejects(attempt, (error: unknown) => error instanceof ApiError && error.code === code);

  it('gives a new key to its first request, and to no other while that runs', async () => {
    const claimId = idOf(await claim());
    await rejectsWith(claim(), 'idempotency_in_flight');
    await rejectsWith(claim({ fingerprint: Buffer.from('another') }), 'idempotency_conflict');
    await answer(claimId, 201, { id: 'card' });
    assert.deepEqual(await claim(), {
      outcome: 'replay',
      claimId,
      response: { status: 201, body: '{"id":"card"}' },
    });
    await rejectsWith(claim({ fingerprint: Buffer.from('another') }), 'idempotency_conflict');
  });

  it('lets one retry at a time join what a dead process left, with the same claim and card', async () => {
    const first = await claim({ leaseMs: 0 });
    const attempts = await Promise.allSettled(Array.from({ length: 10 }, () => claim()));
    const joined = attempts.filter((attempt) => attempt.status === 'fulfilled');
    assert.equal(joined.length, 1);
    assert.deepEqual(joined[0]?.value, first);
    for (const attempt of attempts) {
      if (attempt.status === 'rejected') assert.equal(attempt.reason.code, 'idempotency_in_flight');
    }
  });

  it('refuses to let another request join', async () => {
    await claim({ leaseMs: 0 });
    await rejectsWith(claim({ fingerprint: Buffer.from('another') }), 'idempotency_conflict');
  });

  it('treats a renewed lease as alive and an expired one as dead', async () => {
    const claimId = idOf(await claim({ leaseMs: 0 }));
    await renewLease(commands.context.orm, { claimId, leaseMs: 60_000 });
    await rejectsWith(claim(), 'idempotency_in_flight');
    await renewLease(commands.context.orm, { claimId, leaseMs: 0 });
    assert.equal(idOf(await claim()), claimId);
  });

  it('treats a lease of a clock that has been set back since as expired', async () => {
    const claimId = idOf(await claim({ leaseMs: 7_200_000 }));
    assert.equal(idOf(await claim()), claimId);
  });

  it('keeps the first response', async () => {
    const claimId = idOf(await claim());
    await answer(claimId, 202, { status: 'pending' });
    await answer(claimId, 201, { status: 'active' });
    assert.deepEqual(await claim(), {
      outcome: 'replay',
      claimId,
      response: { status: 202, body: '{"status":"pending"}' },
    });
  });

  it('forgets a 400, and no other response', async () => {
    const issue: FieldIssue = { path: 'amount', message: 'too much' };
    const refused = idOf(await claim());
    await answer(refused, 400, { error: issue });
    await forgetClaim(commands.context.orm, { claimId: refused });
    const claimId = idOf(await claim({ fingerprint: Buffer.from('another') }));
    assert.notEqual(claimId, refused);
    await forgetClaim(commands.context.orm, { claimId });
    await answer(claimId, 402, {});
    await forgetClaim(commands.context.orm, { claimId });
    await rejectsWith(claim(), 'idempotency_conflict');
  });

  it('waits until a 400 is forgotten, and names no operation for it', async () => {
    const refused = idOf(await claim({ mode: 'live' }));
    await answer(refused, 400, { error: 'x' });
    const sent = countStatements(commands.operatorUrl);
    const waiting = claim({ mode: 'live', fingerprint: Buffer.from('another') });
    await until('it has looked twice', () => sent.texts.filter(isInsert).length > 1).finally(sent.stop);
    await forgetClaim(commands.context.orm, { claimId: refused });
    const claimId = idOf(await waiting);
    assert.notEqual(claimId, refused);
    // Its process has died: the lease ends instead.
    await answer(claimId, 400, { error: 'x' });
    await commands.owner.query('UPDATE idempotency_claim SET lease_expires_at = now() WHERE id = $1', [
      claimId,
    ]);
    assert.notEqual(idOf(await claim({ mode: 'live' })), claimId);
  });

  it('encrypts request and response in the row', async () => {
    const claimId = idOf(await claim());
    await answer(claimId, 201, { email: REQUEST.email });
    const { rows } = await commands.owner.query('SELECT * FROM idempotency_claim WHERE id = $1', [claimId]);
    const { request, response_body } = rows[0];
    for (const sealed of [request, response_body]) assert.ok(!sealed.toString('latin1').includes('ada'));
    assert.deepEqual(openRequest(commands.context.ring, claimId, request), REQUEST);
    assert.throws(() => openRequest(commands.context.ring, claimId, response_body));
    assert.throws(() => openRequest(commands.context.ring, 'claim_other', request));
  });
});
