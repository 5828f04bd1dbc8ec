import assert from 'node:assert/strict';
import { changeStatusInTestMode } from '../../cards/change-in-test-mode.ts';
import { acceptIssuance } from '../../cards/end-issuance.ts';
import { beginIssuance, issueInTestMode } from '../../cards/issue.ts';
import { beginTransfer, transferInTestMode } from '../../cards/transfers/begin.ts';
import { readBalance } from '../../ledger/balances.ts';
import { checkLedger } from '../../ledger/check-ledger.ts';
import type { KeyedRequest } from '../../requests/claim.ts';
import { respondOnce, respondWith } from '../../requests/respond-once.ts';
import { readClaimResponse } from '../../requests/response.ts';
import {
  begun,
  keyedRequest,
  openCommands,
  readUsage,
  type TestCommands,
} from '../support/commands/open-commands.ts';
import { untilWaiting } from '../support/commands/until-waiting.ts';
import { countStatements } from '../support/statements.ts';

const REQUEST = { amount: 1_000, external_ref: 'r-1' };
/** Of 1,000 cents by the platform's plan: 100 for the activation, 50 for the funding. */
const DEBITED = 1_150;
const MODES = ['test', 'live'] as const;
const FREE = {
  ...{ cardActivationCents: 0, cardFundingBasisPoints: 0, cardFundingMinCents: 0 },
  ...{ transactionFlatCents: 0, transactionBasisPoints: 0, declineFlatCents: 0 },
};

describe('an issuance', () => {
  let commands: TestCommands;
  before(async () => {
    commands = await openCommands();
  });
  after(async () => {
    assert.deepEqual(await checkLedger(commands.context.orm.em.fork()), []);
    await commands.close();
  });

  const claimed = async (partnerId: string) => {
    const claim = await commands.claimCard({ partnerId, mode: 'live', request: REQUEST });
    assert.ok(claim.outcome === 'claimed');
    return claim.claimId;
  };
  const keyed = (partnerId: string, key = 'k') =>
    keyedRequest('create_card', null, REQUEST, { partnerId, mode: 'test', key });
  const issue = (request: KeyedRequest<'create_card'>) => issueInTestMode(commands.context, request, REQUEST);
  const claims = async (partnerId: string) => {
    const made = 'SELECT id, response_status AS status FROM idempotency_claim WHERE partner_id = $1';
    return (await commands.owner.query(made, [partnerId])).rows;
  };

  /** Begins one, in the way of its mode. @returns begins it again, and says what its answer is */
  async function start(partnerId: string, mode: (typeof MODES)[number]) {
    const claimId = mode === 'live' ? await claimed(partnerId) : '';
    const again = async () => {
      if (mode === 'test') return (await issue(keyed(partnerId))).response;
      await begun(beginIssuance, commands.context, claimId);
      return readClaimResponse(commands.context, claimId);
    };
    return { answer: await again(), again };
  }

  /** Lets none of the account's operations begin while `work` gets them going. */
  async function heldUp(partnerId: string, work: () => Promise<void>): Promise<void> {
    await using holder = await commands.connect();
    await holder.query('BEGIN');
    await holder.query('SELECT FROM account_usage WHERE partner_id = $1 FOR UPDATE', [partnerId]);
    await work();
  }
  const waiting = (runs: number) => untilWaiting(commands, runs);

  for (const mode of MODES) {
    it(`keeps a refusal in ${mode} mode, even if money has arrived by the time of a retry`, async () => {
      const partnerId = await commands.createFundedPartner(DEBITED - 1);
      const { answer, again } = await start(partnerId, mode);
      assert.equal(answer?.status, 402);
      await commands.owner.query('UPDATE partner SET fee_plan = $1 WHERE id = $2', [FREE, partnerId]);
      assert.deepEqual(await again(), answer);
      assert.deepEqual(await readUsage(commands, partnerId, mode), [0, 0]);
    });

    it(`counts towards a day that began while it waited in ${mode} mode`, async () => {
      const partnerId = await commands.createFundedPartner(10_000);
      // What a transaction that waited over midnight finds: another one has begun the new day.
      await commands.owner.query(
        `UPDATE account_usage SET loaded_on = (now() AT TIME ZONE 'UTC')::date + 1, loaded_cents = 5 WHERE partner_id = $1`,
        [partnerId],
      );
      await start(partnerId, mode);
      assert.deepEqual(await readUsage(commands, partnerId, mode), [1, 1_005]);
    });
  }

  it('holds the money once, however many runs of one claim meet at the lock, and refuses none', async () => {
    const partnerId = await commands.createFundedPartner(10_000);
    const claimId = await claimed(partnerId);
    const runs: Promise<string>[] = [];
    await heldUp(partnerId, async () => {
      for (let i = 0; i < 4; i++) runs.push(begun(beginIssuance, commands.context, claimId));
      await waiting(4);
    });
    assert.deepEqual(await Promise.all(runs), ['held', 'held', 'held', 'held']);
    assert.equal(await readClaimResponse(commands.context, claimId), null);
    assert.deepEqual(await readBalance(commands.context.orm.em.fork(), partnerId, 'live'), {
      ...{ availableCents: 10_000 - DEBITED, heldCents: DEBITED, totalCents: 10_000 },
    });
    assert.deepEqual(await readUsage(commands, partnerId, 'live'), [1, 1_000]);
  });

  it('is held, not answered, if the claim was answered 202 while a run waited', async () => {
    const partnerId = await commands.createFundedPartner(10_000);
    const claimId = await claimed(partnerId);
    const begin = () => begun(beginIssuance, commands.context, claimId);
    const runs: Promise<string>[] = [];
    await heldUp(partnerId, async () => {
      runs.push(begin().then((said) => acceptIssuance(commands.context, claimId).then(() => said)));
      await waiting(1);
      runs.push(begin());
      await waiting(2);
    });
    assert.deepEqual(await Promise.all([...runs, begin()]), ['held', 'held', 'held']);
    assert.equal((await readClaimResponse(commands.context, claimId))?.status, 202);
  });

  it('is made once in test mode, however many requests with one key meet, and answers all the same', async () => {
    const partnerId = await commands.createFundedPartner(DEBITED);
    const runs: ReturnType<typeof issue>[] = [];
    await heldUp(partnerId, async () => {
      for (let i = 0; i < 4; i++) runs.push(issue(keyed(partnerId)));
      await waiting(4);
    });
    const answers = await Promise.all(runs);
    assert.equal(new Set(answers.map(({ response }) => response.body)).size, 1);
    assert.equal(answers[0]?.response.status, 201);
    assert.equal(answers.filter(({ replayed }) => !replayed).length, 1);
    assert.deepEqual(await readUsage(commands, partnerId, 'test'), [1, 1_000]);
    assert.equal((await claims(partnerId)).length, 1);
  });

  it('is rolled back if another operation has taken its key meanwhile, whose effect is then the only one', async () => {
    const partnerId = await commands.createFundedPartner(10_000);
    const cardId = await commands.createActiveCard(partnerId, 'test', 1_000);
    const request = keyedRequest('freeze_card', cardId, {}, { partnerId, mode: 'test', key: 'one' });
    const looked = Promise.withResolvers<void>();
    const taken = Promise.withResolvers<void>();
    let tries = 0;
    const other = { ...request, fingerprint: Buffer.from('other') };
    // It has looked before the freeze is there, as if both had begun at once, and writes after it.
    const late = respondOnce(commands.context, other, async (tx) => {
      tries += 1;
      if (tries > 1) throw new Error('the key is looked for again');
      looked.resolve();
      await taken.promise;
      const { ring } = commands.context;
      return respondWith({ tx, ring }, { ...request, claimId: `${request.claimId}x` }, 200, {});
    });
    await looked.promise;
    await changeStatusInTestMode(commands.context, request);
    taken.resolve();
    await assert.rejects(late, /looked for again/);
    const done = (await claims(partnerId)).filter(({ status }) => status === 200);
    assert.deepEqual(done, [{ id: request.claimId, status: 200 }]);
  });

  for (const operation of ['top_up_card', 'withdraw_from_card'] as const) {
    for (const mode of MODES) {
      it(`holds its locks for two statements, as ${operation} does in ${mode} mode`, async () => {
        const partnerId = await commands.createFundedPartner(10_000);
        const cardId = await commands.createActiveCard(partnerId, mode, 1_000);
        const [about, body] = [{ partnerId, mode, cardId }, { amount: 100 }];
        const claimId = mode === 'live' ? await commands.claimOf(operation, about, body) : '';
        const direction = operation === 'top_up_card' ? 'topup' : 'withdrawal';
        const { texts, stop } = countStatements(commands.databaseUrl);
        try {
          if (mode === 'live') await beginTransfer(commands.context, claimId, direction);
          else await transferInTestMode(commands.context, keyedRequest(operation, cardId, body, about), body);
        } finally {
          stop();
        }
        const sent = texts.filter((text) => !/^(begin|commit)/i.test(text));
        assert.equal(sent.length, 2, sent.join('\n\n'));
      });
    }
  }
});
