import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { encodePosting, type Posting, type TransferCode } from '../../ledger/posting.ts';
import { API_ROLE, OPERATOR_ROLE, SERVICE_ROLE, WORKER_ROLE } from '../../platform/db/login.ts';
import { FLOWS, operation, transfer } from '../support/ledger/operations.ts';
import {
  apiUrlOf,
  asOwner,
  connectTo,
  createTestDatabase,
  operatorUrlOf,
  serviceUrlOf,
  workerUrlOf,
} from '../support/postgres.ts';

const FUNDING: TransferCode[] = ['issue_load', 'topup', 'withdrawal', 'fee_activation', 'fee_funding'];
const SETTLEMENT: TransferCode[] = [
  ...(['purchase', 'refund', 'fee_transaction', 'fee_decline', 'late_debit', 'late_refund'] as const),
  ...(['authorization', 'block_release'] as const),
];

/** What each login may post. */
const MAY: Record<string, { urlOf: (url: string) => string; codes: TransferCode[] }> = {
  [API_ROLE]: { urlOf: apiUrlOf, codes: [...FUNDING, ...SETTLEMENT, 'fund_faucet', 'fund_test_usdt'] },
  [WORKER_ROLE]: { urlOf: workerUrlOf, codes: [...FUNDING, ...SETTLEMENT, 'fund_usdt', 'fund_test_usdt'] },
  [OPERATOR_ROLE]: {
    urlOf: operatorUrlOf,
    codes: [...SETTLEMENT, 'fund_usdt', 'fund_test_usdt', 'adjustment_credit', 'adjustment_debit'],
  },
};

const modeOf = (code: TransferCode) =>
  code === 'fund_faucet' || code === 'fund_test_usdt' ? 'test' : 'live';
/** These need a row that says what they are for. */
const NEED_A_ROW: TransferCode[] = [
  ...(['fund_usdt', 'fund_test_usdt', 'late_refund', 'adjustment_credit', 'adjustment_debit'] as const),
];
const CODES = Object.keys(FLOWS) as TransferCode[];

describe('the ledger', () => {
  let url: string;
  before(async () => {
    url = await createTestDatabase();
    await asOwner(url, `INSERT INTO partner (id, name) VALUES ('prt_1', 'P'), ('prt_2', 'Q')`);
  });

  /** Runs statements in one transaction of a login, then calls the ledger in it. @returns the reason, or the outcome */
  async function post(databaseUrl: string, sent: Posting, before: string[] = []): Promise<string> {
    await using client = await connectTo(databaseUrl);
    await client.query('BEGIN');
    for (const statement of before) await client.query(statement);
    const { rows } = await client.query('SELECT outcome, reason FROM ledger.apply_operations($1)', [
      JSON.stringify(encodePosting(sent).steps.map((step) => ({ operation: 0, ...step }))),
    ]);
    await client.query('COMMIT');
    return rows[0].reason ?? rows[0].outcome;
  }

  const one = (code: TransferCode): Posting => ({
    ...operation(`op/${randomUUID()}`, transfer(code, 5)),
    mode: modeOf(code),
  });

  for (const [role, { urlOf, codes }] of Object.entries(MAY)) {
    it(`lets a login of ${role} post its codes and no others, whichever role it sets`, async () => {
      for (const code of CODES.filter((one) => !NEED_A_ROW.includes(one) || !codes.includes(one))) {
        for (const set of ['SET ROLE NONE', `SET ROLE ${role}`]) {
          const outcome = await post(urlOf(url), one(code), [set]);
          assert.equal(outcome === 'not_permitted', !codes.includes(code), `${code}: ${outcome}`);
        }
      }
      if (role === OPERATOR_ROLE) return;
      assert.equal(
        await post(urlOf(url), one('adjustment_credit'), [`SET ROLE ${SERVICE_ROLE}`]),
        'not_permitted',
      );
    });
  }

  it('goes by the role that a session works as, if its login has several', async () => {
    const both = serviceUrlOf(url);
    assert.equal(await post(both, one('fund_faucet'), [`SET ROLE ${API_ROLE}`]), 'applied');
    assert.equal(await post(both, one('fund_faucet'), [`SET ROLE ${WORKER_ROLE}`]), 'not_permitted');
    assert.equal(await post(both, one('fund_faucet'), [`SET ROLE ${SERVICE_ROLE}`]), 'applied');
    assert.equal(await post(both, one('adjustment_credit'), [`SET ROLE ${SERVICE_ROLE}`]), 'not_permitted');
  });

  it('lets nobody post a code that says nothing about it', async () => {
    await asOwner(
      url,
      `INSERT INTO ledger.code (code, debit_kind, credit_kind, may_overdraw, may_hold)
       VALUES ('gift', 'adjustment', 'prepaid', false, false)`,
    );
    const gift = { ...one('adjustment_credit') };
    gift.transfers = [{ ...transfer('adjustment_credit', 5), code: 'gift' as TransferCode }];
    for (const { urlOf } of Object.values(MAY)) assert.equal(await post(urlOf(url), gift), 'not_permitted');
  });

  it('books an adjustment and a late refund only with the row that says so, made in the same transaction', async () => {
    await asOwner(url, [
      `INSERT INTO product (code, bin, network) VALUES ('USD', '424242', 'visa')`,
      `INSERT INTO card (id, partner_id, mode, status, external_ref, product_code, network, network_card_id,
         funding_cents, fees, created_at)
       VALUES ('card_1', 'prt_1', 'live', 'blocked', 'ref', 'USD', 'visa', 'n', 1000, '[]', now())`,
    ]);
    const AUDITED = `INSERT INTO audit_entry (id, actor, action, subject, detail)
      VALUES ('aud_1', 'a', 'partner.adjust', 'prt_1', '{"adjustmentId": "adj_1"}')`;
    const adjusted = (cents: number) =>
      `INSERT INTO balance_adjustment (id, partner_id, mode, amount_cents, reason) VALUES ('adj_1', 'prt_1', 'live', ${cents}, 'r')`;
    const refunded = (chargedTo: string, cents: number) =>
      `INSERT INTO card_transaction (id, partner_id, mode, card_id, network_transaction_id, type,
         amount_cents, fees, charged_to, card_balance_after_cents, created_at)
       VALUES ('txn_1', 'prt_1', 'live', 'card_1', 'n', 'refund', ${cents}, '[]', '${chargedTo}', 0, now())`;
    const cases: [
      TransferCode,
      string,
      urlOf: (url: string) => string,
      right: string[],
      wrong: string[][],
    ][] = [
      [
        ...(['adjustment_credit', 'adjust/adj_1', operatorUrlOf] as const),
        [AUDITED, adjusted(5)],
        [[], [AUDITED, adjusted(-5)], [AUDITED, adjusted(6)]],
      ],
      [
        ...(['late_refund', 'settle/txn_1', apiUrlOf] as const),
        [refunded('partner_balance', 5)],
        [[], [refunded('partner_balance', 6)], [refunded('card', 5)]],
      ],
    ];
    for (const [code, operationId, urlOf, right, wrong] of cases) {
      const sent = { operationId, partnerId: 'prt_1', mode: 'live', transfers: [transfer(code, 5)] } as const;
      for (const before of wrong) {
        await assert.rejects(post(urlOf(url), { ...sent, transfers: [...sent.transfers] }, before), {
          code: '23000',
          message: new RegExp(`\\(${code}\\) has no row of 5 cents in its transaction$`),
        });
      }
      assert.equal(
        await post(urlOf(url), { ...sent, transfers: [...sent.transfers] }, right),
        'applied',
        code,
      );
    }
  });

  describe('books money from a chain', () => {
    const hash = 'ab'.repeat(32);
    const credit = (cause: string, cents: number, partnerId = 'prt_1'): Posting => ({
      ...{ operationId: `deposit/${cause}/dep_1`, partnerId, mode: 'live' },
      transfers: [transfer('fund_usdt', cents)],
    });
    const CREDITED = `UPDATE deposit_payment SET status = 'credited' WHERE log_index = 0`;
    const WITHOUT =
      /^transfer \S+ \(fund_usdt\) has no payment or resolution of \d+ cents in its transaction$/;
    const refuses = async (urlOf: (url: string) => string, sent: Posting, before: string[] = []) => {
      await assert.rejects(post(urlOf(url), sent, before), { code: '23000', message: WITHOUT });
    };

    before(() =>
      asOwner(url, [
        `INSERT INTO deposit (id, partner_id, mode, network, contract_address, address_index, address, address_hash,
           amount_cents, created_at, expires_at)
         VALUES ('dep_1', 'prt_1', 'live', 'nile', 'c', 0, 'a', decode(repeat('00', 20), 'hex'), 500, now(), now())`,
        `INSERT INTO deposit_payment (network, tx_hash, log_index, deposit_id, partner_id, mode, value_micro_usdt,
           block_number, transaction_index, block_time)
         SELECT 'nile', '${hash}', n, 'dep_1', 'prt_1', 'live', 5000000, 1, 0, now() FROM generate_series(0, 1) n`,
      ]),
    );

    it('only with its payment, of the same amount and account, credited in the same transaction', async () => {
      const payment = `nile/${hash}/0`;
      await refuses(workerUrlOf, credit(payment, 500));
      await refuses(workerUrlOf, credit(payment, 501), [CREDITED]);
      await refuses(workerUrlOf, credit(payment, 500, 'prt_2'), [CREDITED]);
      await refuses(workerUrlOf, credit(`nile/${hash}/1`, 500), [CREDITED]);
      await refuses(workerUrlOf, credit('made-up', 500), [CREDITED]);
      assert.equal(await post(workerUrlOf(url), credit(payment, 500), [CREDITED]), 'applied');
      await refuses(workerUrlOf, {
        ...credit(payment, 500),
        transfers: [transfer('fund_usdt', 500, { step: 'again' })],
      });
    });

    it("or with an operator's resolution of that amount, made in the same transaction", async () => {
      const RESOLVED = `INSERT INTO deposit_resolution (deposit_id, version, outcome, credited_cents, reason, actor)
        VALUES ('dep_1', 2, 'credited', 300, 'r', 'a')`;
      const AUDITED = `INSERT INTO audit_entry (id, actor, action, subject, detail)
        VALUES ('aud_2', 'a', 'deposit.resolve', 'dep_1', '{}')`;
      await refuses(operatorUrlOf, credit('resolve/2', 300));
      await refuses(operatorUrlOf, credit('resolve/2', 301), [AUDITED, RESOLVED]);
      await refuses(operatorUrlOf, credit('resolve/3', 300), [AUDITED, RESOLVED]);
      assert.equal(await post(operatorUrlOf(url), credit('resolve/2', 300), [AUDITED, RESOLVED]), 'applied');
    });
  });
});
