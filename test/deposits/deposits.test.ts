import assert from 'node:assert/strict';
import { expectError, expectReplay } from '../support/api/answers.ts';
import { column } from '../support/column.ts';
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
    it("answers 201 with complete payment instructions, and addresses in order, as the account's wallet derives them", async () => {
      for (const expected of TEST_ADDRESSES) {
        partner = await stack.createPartner();
        const { status, json, text } = await post({ amount: 2_512 });
        assert.equal(status, 201, text);
        const { id, address, created, expires_at, ...rest } = json;
        assert.deepEqual(rest, {
          ...{ object: 'deposit', status: 'awaiting_payment', amount: 2_512, currency: 'USD', asset: 'USDT' },
          ...{ network: 'TRC-20', contract_address: TEST_TRON.usdtContract, amount_usdt: '25.12' },
          ...{ received_amount: 0, credited_amount: 0, tx_hash: null, payments: [] },
          ...{ mode: 'live', confirmed_at: null },
        });
        assert.match(id, /^dep_/);
        assert.equal(address, expected);
        assert.equal(Date.parse(expires_at) - Date.parse(created), 8 * 3_600_000);
        assert.deepEqual((await list()).json, { ...EMPTY, data: [json] });
        assert.deepEqual((await get(id)).json, json);
      }
    });

    it('accepts amounts from $1 to $100,000,000, and keeps nothing of others', async () => {
      for (const [amount, usdt] of [
        [100, '1.00'],
        [110, '1.10'],
        [10_000_000_000, '100000000.00'],
      ] as const)
        assert.equal((await post({ amount })).json.amount_usdt, usdt);
      const untouched = await lastingContents(stack);
      for (const amount of [99, 10_000_000_001]) {
        const answer = await post({ amount }, { idempotencyKey: 'k' });
        expectError(answer, 'validation_failed', ['amount']);
        assert.match(answer.json.error.message, /between 100 and 10000000000/);
      }
      assert.deepEqual(await lastingContents(stack), untouched);
    });

    it('gives each of many simultaneous requests its own address, even if others are rolled back', async () => {
      const others = await Promise.all(Array.from({ length: 4 }, () => stack.createPartner()));
      // 20 of each account, a third of them under one key: those get one address.
      const answers = await Promise.all(
        others.flatMap((other) =>
          Array.from({ length: 20 }, (_, n) =>
            post({ amount: 100 }, n % 3 === 0 ? { idempotencyKey: 'one' } : {}, other),
          ),
        ),
      );
      for (const answer of answers) assert.equal(answer.status, 201, answer.text);
      const rows = await asOwner<{ address: string }>(
        stack,
        'SELECT address FROM deposit WHERE partner_id = ANY ($1)',
        [others.map(({ id }) => id)],
      );
      assert.equal(rows.length, 4 * 14);
      assert.equal(new Set(rows.map(({ address }) => address)).size, rows.length);
      for (const other of others) {
        const { data } = (await list('', other)).json;
        const created = data.map((deposit: { created: string }) => deposit.created);
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
      expectReplay(await post({ amount: 100 }, { idempotencyKey: 'k' }), refused);
    });

    it('shows the xpub in no response, log line or table', async () => {
      const answer = await post({ amount: 100 });
      const { xpub } = TEST_TRON;
      assert.ok(!answer.text.includes('xpub'));
      for (const line of stack.logLines) assert.ok(!line.includes(xpub.slice(0, 20)), line);
      for (const rows of Object.values(await lastingContents(stack)))
        for (const row of rows) assert.ok(!row.includes(xpub.slice(0, 20)), row);
    });
  });

  describe('at GET /funding/deposits and GET /funding/deposits/{depositId}', () => {
    const at = (text: string) => new Date(`2026-11-20T${text}.000Z`);

    it('shows every status and what arrived, in the order of the chain', async () => {
      const exact = {
        ...({ valueMicroUsdt: 25_000_000n, status: 'credited', blockNumber: 101 } as const),
        blockTime: at('08:00:00'),
      };
      const short = {
        ...exact,
        ...({ valueMicroUsdt: 24_999_999n, status: 'in_review', reason: 'other_amount' } as const),
      };
      const seen = { ...exact, valueMicroUsdt: 19_999_999n, status: 'found' } as const;
      const late = { ...exact, blockNumber: 90, blockTime: at('07:00:00') };
      const huge = { ...short, valueMicroUsdt: 10n ** 40n, status: 'returned' } as const;
      for (const [status, payments, received, shown] of [
        ['awaiting_payment', [], 0, []],
        ['confirming', [seen], 1_999, [['19.999999', 101, '2026-11-20T08:00:00.000Z', 'found']]],
        ['confirmed', [exact], 2_500, [['25.00', 101, '2026-11-20T08:00:00.000Z', 'credited']]],
        ['expired', [], 0, []],
        [
          'needs_review',
          [short, late],
          4_999,
          [
            ['25.00', 90, '2026-11-20T07:00:00.000Z', 'credited'],
            ['24.999999', 101, '2026-11-20T08:00:00.000Z', 'in_review'],
          ],
        ],
        // More than there are cents for.
        [
          'returned',
          [huge],
          Number.MAX_SAFE_INTEGER,
          [[`1${'0'.repeat(34)}.00`, 101, '2026-11-20T08:00:00.000Z', 'returned']],
        ],
      ] as const) {
        const id = await seedDeposit(stack, partner.id, { status, payments: [...payments] });
        const { json } = await get(id);
        assert.deepEqual([json.status, json.received_amount], [status, received]);
        assert.deepEqual(
          json.payments.map((one: Record<string, unknown>) => [
            one.amount_usdt,
            one.block,
            one.time,
            one.status,
          ]),
          shown,
        );
        assert.equal(json.tx_hash, json.payments[0]?.tx_hash ?? null);
        const isCredited = payments.some((payment) => payment.status === 'credited');
        assert.deepEqual(
          [json.credited_amount, json.confirmed_at !== null],
          [isCredited ? 2_500 : 0, isCredited],
        );
        assert.deepEqual((await list('?limit=1')).json.data, [json]);
      }
    });

    it('shows the first 100 payments when somebody sends dust', async () => {
      const dust = Array.from({ length: 130 }, (_, n) => ({
        ...({ valueMicroUsdt: 1n, status: 'in_review', reason: 'other_amount' } as const),
        ...{ blockNumber: 1_000 - n, blockTime: at('08:00:00') },
      }));
      const id = await seedDeposit(stack, partner.id, { status: 'needs_review', payments: dust });
      const { json } = await get(id);
      assert.deepEqual(
        column(json.payments, 'block'),
        Array.from({ length: 100 }, (_, n) => 871 + n),
      );
      assert.deepEqual((await list()).json.data, [json]);
    });
  });

  it('without TRON_NETWORK answers 409, keeps nothing under the key, and still returns earlier deposits', async () => {
    const without = await sharedStack();
    const of = await without.createPartner();
    expectError(await post({ amount: 100 }, { idempotencyKey: 'k' }, of), 'deposits_not_configured');
    expectError(await post({ amount: 100 }, { mode: 'test' }, of), 'test_key_not_allowed');
    const claims = await asOwner(without, 'SELECT FROM idempotency_claim WHERE partner_id = $1', [of.id]);
    assert.deepEqual(claims, []);
    const id = await seedDeposit(without, of.id, { status: 'expired' });
    const { json } = await get(id, of);
    assert.equal(json.status, 'expired');
    assert.deepEqual((await list('', of)).json.data, [json]);
  });
});
