import assert from 'node:assert/strict';
import { lowestId } from '../../platform/crypto/new-id.ts';
import { expectError } from '../support/api/answers.ts';
import { post } from '../support/api/post.ts';
import { createCard } from '../support/cards.ts';
import { column } from '../support/column.ts';
import { fundedPartner } from '../support/money.ts';
import { asOwner } from '../support/postgres.ts';
import { aroundNow, rowsOf } from '../support/reports.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { TestPartner, TestStack } from '../support/stack.ts';

const REPORTS = ['balance_transactions', 'card_transactions', 'deposits', 'authorizations'] as const;
const HOUR_MS = 3_600_000;
describe('GET /reports/…', () => {
  let stack: TestStack;
  let partner: TestPartner;
  before(async () => {
    stack = await sharedStack('api');
  });
  beforeEach(async () => {
    partner = await fundedPartner(stack);
  });

  const period = (from: Date | string, to: Date | string) =>
    new URLSearchParams({
      from: typeof from === 'string' ? from : from.toISOString(),
      to: typeof to === 'string' ? to : to.toISOString(),
    });
  const report = (name: string, at = aroundNow()) => partner.call('GET', `/reports/${name}?${at}`);
  const makeCard = async (): Promise<string> => (await createCard(partner, { amount: 50_000 })).json.id;
  const purchase = (cardId: string) =>
    post(partner, `/test/cards/${cardId}/simulate-transaction`, { type: 'purchase', amount: 700 });

  const columnsOf = async (name: string) => {
    const [header = [], ...rows] = rowsOf((await report(name)).text);
    return (column: string) => rows.map((row) => row[header.indexOf(column)]);
  };

  for (const [name, columns] of [
    ['balance_transactions', 'id,object,type,amount,balance_after,source_type,source_id,mode,created'],
    [
      'card_transactions',
      'id,object,card_id,type,status,amount,currency,fees,merchant_name,merchant_category_code,merchant_city,' +
        'merchant_country,decline_reason,charged_to,card_amount,partner_balance_amount,authorization_id,' +
        'refunded_transaction_id,card_balance_after,' +
        'mode,created',
    ],
    [
      'deposits',
      'id,object,status,amount,currency,asset,network,contract_address,address,amount_usdt,received_amount,' +
        'credited_amount,tx_hash,mode,created,expires_at,confirmed_at',
    ],
    [
      'authorizations',
      'id,object,card_id,status,amount,held_amount,settled_amount,currency,decline_reason,merchant_name,' +
        'merchant_category_code,merchant_city,merchant_country,expires_at,mode,created',
    ],
  ] as const) {
    it(`has, of ${name}, the resource's scalar fields as columns, and only a header line if there are none`, async () => {
      const longAgo = period('2020-01-01T00:00:00Z', '2020-12-31T00:00:00Z');
      const { status, headers, text } = await report(name, longAgo);
      assert.equal(status, 200, text);
      assert.equal(text, `${columns}\r\n`);
      assert.equal(headers.get('content-type'), 'text/csv; charset=utf-8');
      assert.equal(headers.get('content-disposition'), `attachment; filename="${name}.csv"`);
      assert.match(headers.get('request-id') ?? '', /^req_/);
    });
  }

  it('lists balance transactions oldest first, as the API lists them', async () => {
    const cardId = await makeCard();
    await post(partner, `/cards/${cardId}/topups`, { amount: 1_000 });
    const [header, ...rows] = rowsOf((await report('balance_transactions')).text);
    const { json } = await partner.call('GET', '/balance/transactions?limit=100');
    assert.ok(rows.length > 3);
    // biome-ignore lint/suspicious/noExplicitAny: an item of the list.
    const cells = ({ source, ...item }: any) =>
      [item.id, item.object, item.type, item.amount, item.balance_after]
        .concat(source.type, source.id, item.mode, item.created)
        .map(String);
    assert.deepEqual(rows, json.data.toReversed().map(cells));
    assert.equal(header?.length, rows[0]?.length);
  });

  it('lists the transactions of all cards, with the sum of their fees', async () => {
    const made = [await purchase(await makeCard()), await purchase(await makeCard())];
    const shown = await columnsOf('card_transactions');
    assert.deepEqual(shown('id'), column(made, 'id'));
    assert.deepEqual(shown('amount'), ['700', '700']);
    const feesOf = ({ fees }: { fees: { amount: number }[] }) =>
      String(fees.reduce((sum, { amount }) => sum + amount, 0));
    assert.deepEqual(shown('fees'), made.map(feesOf));
    assert.deepEqual(shown('decline_reason'), ['', '']);
  });

  it('lists authorizations, declined ones included', async () => {
    const path = `/test/cards/${await makeCard()}/authorizations`;
    const made = [
      await post(partner, path, { amount: 900 }),
      await post(partner, path, { amount: 9_000_000 }),
    ];
    const shown = await columnsOf('authorizations');
    assert.deepEqual(shown('id'), column(made, 'id'));
    assert.deepEqual(shown('status'), ['pending', 'declined']);
    assert.deepEqual(shown('held_amount'), ['900', '0']);
  });

  it("includes what was created at `from`, excludes what was created at `to`, and has only the key's account and mode", async () => {
    const made = await purchase(await makeCard());
    const atMs = Date.parse(made.created);
    for (const [fromMs, toMs, ids] of [
      [atMs, atMs + 1, [made.id]],
      [atMs - HOUR_MS, atMs, []],
      [atMs + 1, atMs + HOUR_MS, []],
    ] as const) {
      const { text } = await report('card_transactions', period(new Date(fromMs), new Date(toMs)));
      const [, ...rows] = rowsOf(text);
      assert.deepEqual(
        rows.map(([id]) => id),
        ids,
      );
    }
    const path = `/reports/card_transactions?${aroundNow()}`;
    assert.equal(rowsOf((await partner.call('GET', path, { mode: 'live' })).text).length, 1);
    assert.equal(rowsOf((await (await stack.createPartner()).call('GET', path)).text).length, 1);
  });

  it('includes the balance transaction that was made at `from`, and excludes the one that was made at `to`', async () => {
    for (let i = 0; i < 5; i++) await post(partner, '/test/credit', { amount: 100 + i });
    const { json } = await partner.call('GET', '/balance/transactions?limit=100');
    // biome-ignore lint/suspicious/noExplicitAny: items of the list.
    const items: any[] = json.data.toReversed();
    for (const [index, { created }] of items.entries()) {
      const before = await report('balance_transactions', period(new Date(Date.now() - HOUR_MS), created));
      const fromThen = await report('balance_transactions', period(created, new Date(Date.now() + HOUR_MS)));
      const first = items.findIndex((item) => item.created === created);
      assert.equal(rowsOf(before.text).length - 1, first, String(index));
      assert.equal(rowsOf(fromThen.text).length - 1, items.length - first);
    }
  });

  it('quotes commas, quotes and line breaks, and prefixes text that a spreadsheet would run', async () => {
    const cardId = await makeCard();
    const CELLS = {
      '=1+1': "'=1+1",
      '+1': "'+1",
      '-1': "'-1",
      '@SUM(A1)': "'@SUM(A1)",
      '\tx': "'\tx",
      '\rx': `"'\rx"`,
      'a, "b"\r\nc': '"a, ""b""\r\nc"',
      "'fine": "'fine",
      'x=1': 'x=1',
    };
    await asOwner(
      stack,
      `INSERT INTO card_transaction (id, partner_id, mode, card_id, network_transaction_id, type,
         amount_cents, fees, merchant_name, charged_to, card_balance_after_cents, created_at)
       SELECT substr($1, 1, 14) || lpad(n::text, 16, '0'), $2, 'test', $3, gen_random_uuid(), 'purchase',
         n, '[]', name, 'card', 0, now() FROM unnest($4::text[]) WITH ORDINALITY t (name, n)`,
      [lowestId('txn', new Date()), partner.id, cardId, Object.keys(CELLS)],
    );
    const { text } = await report('card_transactions');
    for (const cell of Object.values(CELLS))
      assert.ok(text.includes(`,USD,0,${cell},`), JSON.stringify(cell));
  });

  it('answers 400 that names the parameter for what is no period of 366 days at most', async () => {
    for (const [at, param, message] of [
      [{}, 'from', /from is required; to is required/],
      [{ from: '2026-01-01T00:00:00Z' }, 'to', /to is required/],
      [{ from: 'yesterday', to: '2026-01-01T00:00:00Z' }, 'from', /from must be an ISO 8601 timestamp/],
      [{ from: '2026-01-01T00:00:00Z', to: '2026-01-01T00:00:00Z' }, 'to', /to must be later/],
      [{ from: '2026-01-01T00:00:00+01:00', to: '2025-12-31T23:00:00Z' }, 'to', /to must be later/],
      [{ from: '2024-01-01T00:00:00Z', to: '2025-01-01T00:00:00.001Z' }, 'to', /at most 366 days/],
    ] as const) {
      const answer = await report('deposits', new URLSearchParams(at as Record<string, string>));
      expectError(answer, 'validation_failed', Object.keys(at).length === 0 ? ['from', 'to'] : [param]);
      assert.equal(answer.json.error.param, param);
      assert.match(answer.json.error.message, message);
    }
  });

  it('takes any year that a time can have, and 366 days', async () => {
    for (const [from, to] of [
      ['0000-01-01T00:00:00Z', '0000-12-31T00:00:00Z'],
      ['0000-01-01T00:00:00+12:00', '0000-12-31T00:00:00+12:00'],
      ['9998-01-01T00:00:00Z', '9999-01-01T00:00:00Z'],
      ['9999-01-01T00:00:00-12:00', '9999-12-31T23:59:59-12:00'],
      ['2024-01-01T00:00:00+14:00', '2025-01-01T00:00:00+14:00'],
    ] as const) {
      for (const name of REPORTS) {
        const { status, text } = await report(name, period(from, to));
        assert.equal(status, 200, text);
      }
    }
  });
});
