import assert from 'node:assert/strict';
import { changeStatusInTestMode } from '../../cards/change-in-test-mode.ts';
import { beginStatusChange } from '../../cards/change-status.ts';
import { beginIssuance, issueInTestMode } from '../../cards/issue.ts';
import { beginTopUp, topUpInTestMode } from '../../cards/transfers/top-up.ts';
import { checkLedger } from '../../ledger/check-ledger.ts';
import { claimIdempotencyKey, type KeyedRequest } from '../../requests/claim.ts';
import { respondOnce, respondWith } from '../../requests/respond-once.ts';
import { readClaimResponse, sealRequest } from '../../requests/response.ts';
import { keyedRequest, openCommands, type TestCommands } from '../support/commands/open-commands.ts';
import { until } from '../support/until.ts';

const REQUEST = { amount: 1_000, external_ref: 'r-1' };
/** Of 1,000 cents by the platform's plan: 100 for the activation, 50 for the funding. */
const DEBITED = 1_150;

describe('operations in test mode', () => {
  let commands: TestCommands;
  before(async () => {
    commands = await openCommands();
  });
  after(async () => {
    assert.deepEqual(await checkLedger(commands.context.orm.em.fork()), []);
    await commands.close();
  });

  const issuance = (partnerId: string, key = 'k', request = REQUEST) =>
    keyedRequest('create_card', null, request, { partnerId, mode: 'test', key });
  const issue = (request: KeyedRequest<'create_card'>, body = REQUEST) =>
    issueInTestMode(commands.context, request, body);
  const rows = async (sql: string, values: unknown[]) => (await commands.owner.query(sql, values)).rows;
  const usage = async (partnerId: string) =>
    (
      await rows(
        `SELECT open_cards, loaded_cents FROM account_usage WHERE partner_id = $1 AND mode = 'test'`,
        [partnerId],
      )
    )[0];
  const claims = (partnerId: string) =>
    rows('SELECT id, response_status AS status FROM idempotency_claim WHERE partner_id = $1', [partnerId]);

  /** Lets nothing of the account that counts begin while `work` gets it going. */
  async function heldUp(partnerId: string, runs: number, work: () => Promise<unknown>[]): Promise<unknown[]> {
    const holder = await commands.connect();
    await holder.query('BEGIN');
    await holder.query('SELECT FROM account_usage WHERE partner_id = $1 FOR UPDATE', [partnerId]);
    const all = work();
    await until(`${runs} wait`, async () => {
      const waiting = await rows(
        `SELECT FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = 'commands-test' AND wait_event_type = 'Lock'`,
        [],
      );
      return waiting.length === runs;
    });
    await holder.end();
    return Promise.all(all);
  }

  it('issue once, however many requests with one key meet, and answer all the same', async () => {
    const partnerId = await commands.createFundedPartner(DEBITED);
    const answers = (await heldUp(partnerId, 4, () =>
      Array.from({ length: 4 }, () => issue(issuance(partnerId))),
    )) as Awaited<ReturnType<typeof issue>>[];
    assert.deepEqual(new Set(answers.map(({ response }) => response.body)).size, 1);
    assert.equal(answers[0]?.response.status, 201);
    assert.equal(answers.filter(({ replayed }) => !replayed).length, 1);
    assert.deepEqual(await usage(partnerId), { open_cards: 1, loaded_cents: '1000' });
    assert.equal((await claims(partnerId)).length, 1);
  });

  it('keep a refusal, even if money has arrived by the time of a retry', async () => {
    const partnerId = await commands.createFundedPartner(DEBITED - 1);
    const refusal = await issue(issuance(partnerId));
    assert.equal(refusal.response.status, 402);
    await commands.owner.query('UPDATE partner SET fee_plan = $1 WHERE id = $2', [
      {
        ...{ cardActivationCents: 0, cardFundingBasisPoints: 0, cardFundingMinCents: 0 },
        ...{ transactionFlatCents: 0, transactionBasisPoints: 0, declineFlatCents: 0 },
      },
      partnerId,
    ]);
    const again = await issue(issuance(partnerId));
    assert.deepEqual([again.replayed, again.response], [true, refusal.response]);
    assert.equal((await issue(issuance(partnerId, 'new'))).response.status, 201);
    assert.deepEqual(await usage(partnerId), { open_cards: 1, loaded_cents: '1000' });
  });

  it('count towards a day that began while they waited', async () => {
    const partnerId = await commands.createFundedPartner(10_000);
    // What a transaction that waited over midnight finds: another one has begun the new day.
    await commands.owner.query(
      `UPDATE account_usage SET loaded_on = (now() AT TIME ZONE 'UTC')::date + 1, loaded_cents = 5 WHERE partner_id = $1`,
      [partnerId],
    );
    await issue(issuance(partnerId));
    assert.deepEqual(await usage(partnerId), { open_cards: 1, loaded_cents: '1005' });
  });

  it('roll back if another operation has taken their key meanwhile, whose effect is then the only one', async () => {
    const partnerId = await commands.createFundedPartner(10_000);
    const cardId = await commands.createActiveCard(partnerId, 'test', 1_000);
    const request = keyedRequest('freeze_card', cardId, {}, { partnerId, mode: 'test', key: 'one' });
    const looked = Promise.withResolvers<void>();
    const taken = Promise.withResolvers<void>();
    let tries = 0;
    // It has looked before the freeze is there, as if both had begun at once, and writes after it.
    const late = respondOnce(
      commands.context,
      { ...request, fingerprint: Buffer.from('other') },
      async (tx) => {
        tries += 1;
        if (tries > 1) throw new Error('the key is looked for again');
        looked.resolve();
        await taken.promise;
        return respondWith(
          { tx, ring: commands.context.ring },
          { ...request, claimId: `${request.claimId}x` },
          200,
          {},
        );
      },
    );
    await looked.promise;
    await changeStatusInTestMode(commands.context, request);
    taken.resolve();
    await assert.rejects(late, /looked for again/);
    assert.deepEqual(await claims(partnerId).then((all) => all.filter(({ status }) => status === 200)), [
      { id: request.claimId, status: 200 },
    ]);
  });

  describe('with a claim that the previous release left without a response,', () => {
    async function left(partnerId: string, cardId: string | null, operation: KeyedRequest['operation']) {
      const request = keyedRequest(operation, cardId, REQUEST, { partnerId, mode: 'test', key: 'left' });
      const sealedRequest = sealRequest(commands.context.ring, request.claimId, REQUEST);
      const { orm, ring } = commands.context;
      await claimIdempotencyKey({ orm, ring }, { ...request, sealedRequest, leaseMs: 60_000 });
      return request;
    }

    it('are not carried out by its workflow', async () => {
      const partnerId = await commands.createFundedPartner(10_000);
      const cardId = await commands.createActiveCard(partnerId, 'test', 1_000);
      for (const [operation, open] of [
        ['create_card', beginIssuance],
        ['top_up_card', beginTopUp],
        ['freeze_card', beginStatusChange],
      ] as const) {
        const about = operation === 'create_card' ? null : cardId;
        const { claimId } = await left(partnerId, about, operation);
        assert.equal((await open(commands.context, claimId)).state, 'answered');
        assert.equal(await readClaimResponse(commands.context, claimId), null);
        await commands.owner.query('DELETE FROM idempotency_claim WHERE id = $1', [claimId]);
        assert.equal((await open(commands.context, claimId)).state, 'answered');
      }
      assert.deepEqual(await usage(partnerId), { open_cards: 1, loaded_cents: '1000' });
    });

    it('are carried out once by a retry', async () => {
      const partnerId = await commands.createFundedPartner(10_000);
      const old = await left(partnerId, null, 'create_card');
      const retry = { ...issuance(partnerId, 'left'), fingerprint: old.fingerprint };
      const issued = await issue(retry);
      assert.deepEqual([issued.replayed, issued.response.status], [false, 201]);
      assert.equal(JSON.parse(issued.response.body).id, retry.resourceId);
      const again = await issue({ ...issuance(partnerId, 'left'), fingerprint: old.fingerprint });
      assert.deepEqual([again.replayed, again.response], [true, issued.response]);
      assert.deepEqual(await claims(partnerId), [{ id: retry.claimId, status: 201 }]);
    });
  });

  it('keep nothing of a top-up whose sum exceeds the safe integers', async () => {
    const partnerId = await commands.createFundedPartner(10_000);
    const cardId = await commands.createActiveCard(partnerId, 'test', 1_000);
    const amount = Number.MAX_SAFE_INTEGER - 999;
    const request = keyedRequest(
      'top_up_card',
      cardId,
      { amount },
      { partnerId, mode: 'test', key: 'top-up' },
    );
    await assert.rejects(topUpInTestMode(commands.context, request, { amount }), {
      code: 'validation_failed',
    });
    assert.equal((await claims(partnerId)).length, 1);
  });
});
