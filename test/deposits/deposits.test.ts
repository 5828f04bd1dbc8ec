import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { DepositResource } from '../../deposits/resource.ts';
import { expectError } from '../support/api/answers.ts';
import { recordPayment } from '../support/deposits/payments.ts';
import { seedDeposit, TEST_ADDRESSES, TEST_TRON } from '../support/deposits/seed-deposits.ts';
import { asOwner } from '../support/postgres.ts';
import { sharedStack } from '../support/shared-stack.ts';
import { type CallOptions, startTestStack, type TestPartner, type TestStack } from '../support/stack.ts';
import { lastingContents } from '../support/stored-data.ts';

const PATH = '/funding/deposit-address';
const EMPTY = { object: 'list', data: [], has_more: false, next_cursor: null };

describe('the API', () => {
  let stack: TestStack;
  let partner: TestPartner;
  before(async () => {
    // No worker, and nobody at the node's address: the API alone.
    stack = await startTestStack({ tron: TEST_TRON, logLevel: 'trace' }, { worker: false });
  });
  beforeEach(async () => {
    partner = await stack.createPartner();
  });
  after(() => stack.stop());

  const post = (body: unknown, options: CallOptions = {}, of = partner) =>
    of.call('POST', PATH, { mode: 'live', body, ...options });
  const list = (query = '', of = partner) => of.call('GET', `/funding/deposits${query}`, { mode: 'live' });
  const get = (id: string, of = partner) => of.call('GET', `/funding/deposits/${id}`, { mode: 'live' });

  describe('at POST /funding/deposit-address', () => {
    it("gives out the account's addresses in order, as wallets derive them", async () => {
      for (const [index, expected] of TEST_ADDRESSES.entries()) {
        const { json, status } = await post({ amount: 2_500 });
        assert.equal(status, 201);
        const [row] = await asOwner<{
          address_index: number;
          hash: string;
          version: number;
          told_version: number;
        }>(
          stack,
          `SELECT address_index, encode(address_hash, 'hex') AS hash, version, told_version FROM deposit WHERE id = $1`,
          [json.id],
        );
        assert.deepEqual([json.address, row?.address_index, row?.hash.length], [expected, index, 40]);
        // Its workflow has yet to hear of it.
        assert.deepEqual([row?.version, row?.told_version], [1, 0]);
      }
    });

    it('answers 201 with complete payment instructions', async () => {
      const { status, json, text } = await post({ amount: 2_512 });
      assert.equal(status, 201, text);
      assert.deepEqual(DepositResource.strict().parse(json), json);
      const { id, address, created, expires_at, ...rest } = json;
      assert.deepEqual(rest, {
        ...{ object: 'deposit', status: 'awaiting_payment', amount: 2_512, currency: 'USD', asset: 'USDT' },
        ...{ network: 'TRC-20', contract_address: TEST_TRON.usdtContract, amount_usdt: '25.12' },
        ...{ received_amount: 0, credited_amount: 0, tx_hash: null, payments: [] },
        ...{ mode: 'live', confirmed_at: null },
      });
      assert.match(id, /^dep_/);
      assert.match(address, /^T[1-9A-HJ-NP-Za-km-z]{33}$/);
      assert.equal(Date.parse(expires_at) - Date.parse(created), 8 * 3_600_000);
      assert.ok(Math.abs(Date.parse(created) - Date.now()) < 60_000);
    });

    it('accepts amounts from $1 to $100,000,000', async () => {
      assert.equal((await post({ amount: 100 })).json.amount_usdt, '1.00');
      const largest = await post({ amount: 10_000_000_000 });
      assert.deepEqual([largest.status, largest.json.amount_usdt], [201, '100000000.00']);
      assert.equal((await post({ amount: 110 })).json.amount_usdt, '1.10');
    });

    it('answers 400 and names the amount for any other, and keeps nothing of it', async () => {
      const untouched = await lastingContents(stack);
      const wrong = [0, 1, 99, -100, 10_000_000_001, 2 ** 53, 1e300, 100.5, '100', null, true, [100], {}];
      for (const amount of wrong) {
        const answer = await post({ amount }, { idempotencyKey: 'k' });
        expectError(answer, 'validation_failed', ['amount']);
        const says =
          typeof amount === 'number' && Number.isSafeInteger(amount)
            ? /between 100 and 10000000000/
            : /must be/;
        assert.match(answer.json.error.message, says);
      }
      expectError(await post({}), 'validation_failed', ['amount']);
      assert.deepEqual(await lastingContents(stack), untouched);
    });

    it('answers 403 to a test key, whatever else is wrong', async () => {
      for (const body of [{ amount: 100 }, {}, 'not JSON']) {
        expectError(await post(body, { mode: 'test', idempotencyKey: 'k' }), 'test_key_not_allowed');
      }
      assert.equal((await post({ amount: 100 }, { idempotencyKey: 'k' })).status, 201);
    });

    it('gives each of many simultaneous requests its own address, even if others are rolled back', async () => {
      const others = await Promise.all(Array.from({ length: 4 }, () => stack.createPartner()));
      const [before] = await asOwner<{ n: number }>(
        stack,
        'SELECT last_value::int AS n FROM deposit_address_index',
      );
      // 20 of each account, a third of them under one key: those get one address.
      const answers = await Promise.all(
        others.flatMap((other) =>
          Array.from({ length: 20 }, (_, n) =>
            post({ amount: 100 }, n % 3 === 0 ? { idempotencyKey: 'one' } : {}, other),
          ),
        ),
      );
      for (const answer of answers) assert.equal(answer.status, 201, answer.text);
      const rows = await asOwner<{ partner_id: string; n: number; address: string }>(
        stack,
        'SELECT partner_id, address_index AS n, address FROM deposit WHERE partner_id = ANY ($1)',
        [others.map(({ id }) => id)],
      );
      assert.equal(rows.length, 4 * 14);
      assert.equal(new Set(rows.map(({ address }) => address)).size, rows.length);
      assert.ok(rows.every(({ n }) => n > Number(before?.n)));
      for (const other of others) {
        const created = (await list('', other)).json.data.map(
          (deposit: { created: string }) => deposit.created,
        );
        assert.deepEqual(created, created.toSorted().reverse(), 'out of order');
      }
    });

    it('never gives out the number of a deposit that was rolled back', async () => {
      await asOwner(
        stack,
        `CREATE FUNCTION refuse_deposit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$;
         CREATE TRIGGER refuse BEFORE INSERT ON deposit FOR EACH ROW WHEN (NEW.amount_cents = 666) EXECUTE FUNCTION refuse_deposit()`,
      );
      const indexOf = async () =>
        (await asOwner<{ n: number }>(stack, 'SELECT max(address_index) AS n FROM deposit'))[0]?.n ?? -1;
      const before = await indexOf();
      expectError(await post({ amount: 666 }, { idempotencyKey: 'k' }), 'internal_error');
      await asOwner(stack, 'DROP TRIGGER refuse ON deposit');
      const answer = await post({ amount: 666 }, { idempotencyKey: 'k' });
      assert.deepEqual([answer.status, answer.headers.get('idempotent-replayed')], [201, null]);
      assert.equal(await indexOf(), before + 2);
    });

    it('answers 422 for more than 10,000 open deposits, until some are paid or expire', async () => {
      await asOwner(
        stack,
        `INSERT INTO deposit (id, partner_id, mode, network, contract_address, address_index, address, address_hash,
           amount_cents, status, created_at, expires_at)
         SELECT 'dep_' || n, $1, 'live', 'private', 'T', 1000000 + n, 'T', decode(lpad(to_hex(n), 40, '0'), 'hex'), 100,
           'awaiting_payment', now(), now() FROM generate_series(1, 9999) n`,
        [partner.id],
      );
      assert.equal((await post({ amount: 100 })).status, 201);
      const refused = await post({ amount: 100 }, { idempotencyKey: 'k' });
      expectError(refused, 'limit_exceeded');
      assert.match(refused.json.error.message, /10000 deposits/);
      // Somebody else's are nobody's business.
      assert.equal((await post({ amount: 100 }, {}, await stack.createPartner())).status, 201);
      await asOwner(stack, `UPDATE deposit SET status = 'expired' WHERE id = 'dep_7'`);
      assert.equal((await post({ amount: 100 })).status, 201);
      expectError(await post({ amount: 100 }), 'limit_exceeded');
      // Test mode counts its own.
      assert.equal((await partner.call('POST', '/test/deposits', { body: { amount: 100 } })).status, 201);
      // The refusal of the key stays.
      const again = await post({ amount: 100 }, { idempotencyKey: 'k' });
      assert.deepEqual([again.text, again.headers.get('idempotent-replayed')], [refused.text, 'true']);
    });

    it('shows the xpub in no response, log line or table', async () => {
      const answer = await post({ amount: 100 });
      const { xpub } = TEST_TRON;
      assert.ok(!answer.text.includes('xpub'));
      for (const line of stack.logLines) assert.ok(!line.includes(xpub.slice(0, 20)), line);
      for (const rows of Object.values(await lastingContents(stack)))
        for (const row of rows) assert.ok(!row.includes(xpub.slice(0, 20)), row);
      const line = stack.logLines
        .map((each) => JSON.parse(each))
        .find((each) => each.workflowId === `deposit/${answer.json.id}`);
      assert.deepEqual([line?.msg, line?.partnerId, line?.mode], ['request', partner.id, 'live']);
    });
  });

  describe('at GET /funding/deposits and GET /funding/deposits/{depositId}', () => {
    const at = (text: string) => new Date(`2026-11-20T${text}.000Z`);

    it('returns a new deposit as its creation did', async () => {
      const { json } = await post({ amount: 4_200 });
      assert.deepEqual((await list()).json, { ...EMPTY, data: [json] });
      const read = await get(json.id);
      assert.deepEqual([read.status, read.json], [200, json]);
    });

    it('shows every status and what arrived', async () => {
      const exact = {
        valueMicroUsdt: 25_000_000n,
        status: 'credited',
        blockNumber: 101,
        blockTime: at('08:00:00'),
      } as const;
      const short = {
        ...exact,
        valueMicroUsdt: 24_999_999n,
        status: 'in_review',
        reason: 'other_amount',
      } as const;
      const late = { ...exact, blockNumber: 90, blockTime: at('07:00:00') };
      const huge = { ...short, valueMicroUsdt: 10n ** 40n, status: 'returned' } as const;
      const deposits = {
        awaiting_payment: [],
        confirming: [],
        confirmed: [exact],
        expired: [],
        // Given in another order than the chain's.
        needs_review: [short, late],
        returned: [huge],
      } as const;
      const expected = {
        awaiting_payment: [0, []],
        confirming: [0, []],
        confirmed: [2_500, [['25.00', 101, '2026-11-20T08:00:00.000Z', 'credited']]],
        expired: [0, []],
        needs_review: [
          4_999,
          [
            ['25.00', 90, '2026-11-20T07:00:00.000Z', 'credited'],
            ['24.999999', 101, '2026-11-20T08:00:00.000Z', 'in_review'],
          ],
        ],
        // More than there are cents for.
        returned: [
          Number.MAX_SAFE_INTEGER,
          [[`1${'0'.repeat(34)}.00`, 101, '2026-11-20T08:00:00.000Z', 'returned']],
        ],
      };
      for (const [status, payments] of Object.entries(deposits)) {
        const id = await seedDeposit(stack, partner.id, {
          status: status as keyof typeof deposits,
          payments: [...payments],
        });
        const { json } = await get(id);
        assert.deepEqual(DepositResource.strict().parse(json), json);
        const shown = json.payments.map((payment: Record<string, unknown>) => [
          payment.amount_usdt,
          payment.block,
          payment.time,
          payment.status,
        ]);
        assert.deepEqual(
          [json.status, [json.received_amount, shown]],
          [status, expected[status as keyof typeof expected]],
        );
        assert.equal(json.tx_hash, json.payments[0]?.tx_hash ?? null);
        const isCredited = payments.some((payment) => payment.status === 'credited');
        assert.equal(json.credited_amount, isCredited ? 2_500 : 0);
        assert.equal(
          json.confirmed_at !== null,
          payments.some((payment) => payment.status === 'credited'),
        );
        assert.deepEqual((await list('?limit=1')).json.data, [json]);
      }
    });

    it('counts a payment as received as soon as it is recorded, credited or not', async () => {
      const id = await seedDeposit(stack, partner.id, { status: 'confirming' });
      assert.equal((await get(id)).json.received_amount, 0);
      await recordPayment(stack.orm, id, { usdt: '20' });
      await recordPayment(stack.orm, id, { usdt: '4.999999' });
      const { json } = await get(id);
      assert.deepEqual([json.status, json.received_amount, json.payments.length], ['confirming', 2_499, 2]);
      assert.deepEqual(
        json.payments.map(({ status }: { status: string }) => status),
        ['found', 'found'],
      );
      assert.deepEqual((await list('?limit=1')).json.data, [json]);
    });

    it('shows the first 100 payments when somebody sends dust', async () => {
      const dust = Array.from({ length: 130 }, (_, n) => ({
        ...({ valueMicroUsdt: 1n, status: 'in_review', reason: 'other_amount' } as const),
        ...{ blockNumber: 1_000 - n, blockTime: at('08:00:00') },
      }));
      const id = await seedDeposit(stack, partner.id, { status: 'needs_review', payments: dust });
      const { json } = await get(id);
      assert.deepEqual(
        json.payments.map(({ block }: { block: number }) => block),
        Array.from({ length: 100 }, (_, n) => 871 + n),
      );
      assert.deepEqual((await list()).json.data, [json]);
    });
  });

  describe('without TRON_NETWORK', () => {
    let without: TestStack;
    before(async () => {
      without = await sharedStack();
    });

    it('answers 409 to a request for an address and 403 to a test key, and keeps nothing under the Idempotency-Key', async () => {
      const of = await without.createPartner();
      const answer = await post({ amount: 100 }, { idempotencyKey: randomUUID() }, of);
      expectError(answer, 'deposits_not_configured');
      expectError(await post({ amount: 100 }, { mode: 'test' }, of), 'test_key_not_allowed');
      expectError(await post({ amount: 1 }, {}, of), 'validation_failed', ['amount']);
      assert.deepEqual(
        await asOwner(without, 'SELECT FROM idempotency_claim WHERE partner_id = $1', [of.id]),
        [],
      );
    });

    it('still returns earlier deposits', async () => {
      const of = await without.createPartner();
      assert.deepEqual((await list('', of)).json, EMPTY);
      const id = await seedDeposit(without, of.id, { status: 'expired' });
      assert.deepEqual((await get(id, of)).json.status, 'expired');
      assert.deepEqual((await list('', of)).json.data.length, 1);
    });
  });
});
