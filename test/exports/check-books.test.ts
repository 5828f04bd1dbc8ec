import assert from 'node:assert/strict';
import { checkBooks } from '../../exports/check-books.ts';
import { encodePosting, type TransferCode } from '../../ledger/posting.ts';
import { type Orm, openOrm } from '../../platform/db/orm.ts';
import { query } from '../../platform/db/sql.ts';
import { openCommands, type TestCommands } from '../support/commands/open-commands.ts';
import { operation, transfer } from '../support/ledger/operations.ts';
import { ownerUrlOf } from '../support/postgres.ts';

class Undo extends Error {}

describe('the comparison of the ledger with the rows that it books', () => {
  let commands: TestCommands;
  let owners: Orm;
  let partnerId: string;
  let cardId: string;

  before(async () => {
    commands = await openCommands();
    const databaseUrl = ownerUrlOf(commands.operatorUrl);
    owners = await openOrm({ databaseUrl, poolSize: 1, onOwnerLogin: () => {} });
    partnerId = await commands.createFundedPartner(100_000);
    cardId = await commands.createActiveCard(partnerId, 'live', 1_000);
    await commands.createActiveCard(partnerId, 'test', 1_000);
  });
  after(async () => {
    await owners.close();
    await commands.close();
  });

  /** What is found after a statement of the owner's, which is undone afterwards. */
  async function foundAfter(statement: string, values: unknown[] = []): Promise<string[]> {
    let found: string[] = [];
    const run = owners.em.fork().transactional(async (tx) => {
      await query(tx, 'SET LOCAL session_replication_role = replica');
      await query(tx, statement, values);
      found = (await checkBooks(tx)).map(({ subject, message }) => `${subject}: ${message}`);
      throw new Undo();
    });
    await assert.rejects(run, Undo);
    return found;
  }

  it('finds nothing where every posting has its row, for operators and workers alike', async () => {
    assert.deepEqual(await foundAfter('SELECT'), []);
    assert.deepEqual(await checkBooks(commands.context.orm.em.fork()), []);
    assert.deepEqual(await checkBooks(commands.operator.orm.em.fork()), []);
  });

  const FUNDINGS = 'adjustment_credit adjustment_debit fund_usdt fund_faucet issue_load topup withdrawal';
  const OTHERS = 'purchase refund late_debit late_refund';
  const FEES = 'fee_activation fee_funding fee_transaction fee_decline';
  for (const code of `${FUNDINGS} ${OTHERS} ${FEES}`.split(' ') as TransferCode[]) {
    it(`finds a ${code} without its row`, async () => {
      const mode = code === 'fund_faucet' ? 'test' : 'live';
      const posting = operation(`made-up/${code}`, transfer(code, 7, { cardId }));
      const sent = { ...posting, partnerId, mode } as const;
      const steps = encodePosting(sent).steps.map((step) => ({ operation: 0, ...step }));
      const found = await foundAfter('SELECT ledger.apply_operations($1)', [JSON.stringify(steps)]);
      assert.deepEqual(found, [
        `made-up/${code}: for ${code} the ledger has 7 posted and 0 held, ${partnerId} ${mode}; the row it is for says nothing`,
        // Of which card, only the row would say.
        ...(/^late_/.test(code) ? [`made-up/${code}: its ${code} of 7 has a true-up of nothing`] : []),
      ]);
    });
  }

  const transferRow = (direction: 'topup' | 'withdrawal', end: string) =>
    `INSERT INTO card_transfer (id, partner_id, mode, card_id, direction, amount_cents, created_at, status, card_balance_cents,
       completed_at)
     VALUES ('x', 'p', 'live', 'c', '${direction}', 5, now(), ${end})`;
  const ROWS: [what: string, statement: string, says?: string][] = [
    [
      'an adjustment',
      `WITH audited AS (INSERT INTO audit_entry (id, actor, action, subject, detail)
         VALUES ('aud_0', 'a', 'partner.adjust', 'p', '{"adjustmentId": "x"}'))
       INSERT INTO balance_adjustment (id, partner_id, mode, amount_cents, reason) VALUES ('x', 'p', 'live', -5, '')`,
    ],
    [
      'a faucet credit',
      `INSERT INTO faucet_credit (id, partner_id, mode, amount_cents) VALUES ('x', 'p', 'test', 5)`,
    ],
    [
      'a credited payment',
      `INSERT INTO deposit_payment (network, tx_hash, log_index, deposit_id, partner_id, mode, value_micro_usdt, block_number,
         transaction_index, block_time, status) VALUES ('nile', repeat('ab', 32), 0, 'x', 'p', 'live', 50000, 1, 0, now(), 'credited')`,
    ],
    ['a top-up', transferRow('topup', `'succeeded', 5, now()`)],
    ['a withdrawal', transferRow('withdrawal', `'succeeded', 0, now()`)],
    ['a pending withdrawal', transferRow('withdrawal', `'pending', NULL, NULL`), '0 posted and 5 held'],
    [
      'a settled purchase',
      `INSERT INTO card_transaction (id, partner_id, mode, card_id, network_transaction_id, type, amount_cents,
         fees, charged_to, card_balance_after_cents, created_at)
       VALUES ('x', 'p', 'live', 'c', 'n', 'purchase', 5, '[]', 'card', 0, now())`,
    ],
  ];
  for (const [what, statement, says = '5 posted and 0 held'] of ROWS) {
    it(`finds ${what} without its posting`, async () => {
      const [found = '', ...others] = await foundAfter(statement);
      assert.match(found, /^\S*\bx: for \w+ the ledger has nothing; the row it is for says /);
      assert.ok(found.includes(` says ${says}, p`), found);
      assert.deepEqual(others, []);
    });
  }

  it('finds an adjustment without its entry in the audit log', async () => {
    const found = await foundAfter(`DELETE FROM audit_entry WHERE action = 'partner.adjust'`);
    assert.equal(found.length, 2);
    const login = new URL(commands.operatorUrl).username;
    for (const one of found) {
      assert.match(one, /^adj_\w+: this adjustment of 100000 cents, prt_\w+ (live|test), /);
      assert.match(one, new RegExp(`by the login ${login}, has no entry in the audit log$`));
    }
  });

  const AUTHORIZATION = `INSERT INTO card_authorization (id, partner_id, mode, card_id, status, amount_cents, held_cents,
      settled_cents, requests, holds, expires_at, created_at)
    SELECT 'auth_x', partner_id, mode, id, 'closed', 5, 0, 5, '[{}]', 0, now(), now() FROM card WHERE mode = 'live'`;
  const COUNTED: [what: string, statement: string, message: RegExp][] = [
    [
      'clearings of an authorization that are missing',
      AUTHORIZATION,
      /^auth_x: its settled_cents are 5; its clearings add up to 0$/,
    ],
    [
      'a payment that has cleared more than its authorization',
      `WITH made AS (${AUTHORIZATION} RETURNING id, partner_id, mode, card_id)
       INSERT INTO payment (mode, payment_id, partner_id, card_id, authorization_id, said, requests, cleared_cents, is_expired)
       SELECT mode, 'n', partner_id, card_id, id, '{"unreadable": []}', '[]', 6, false FROM made`,
      /^auth_x: its settled_cents are 5; those of its payment are 6$/,
    ],
    [
      'an open card too many',
      "UPDATE account_usage SET open_cards = 2 WHERE mode = 'live'",
      /live: its open_cards are 2; it has 1$/,
    ],
    [
      'a load that was not counted',
      "UPDATE account_usage SET loaded_cents = 999 WHERE mode = 'live'",
      /live: its loaded_cents of \S+ are 999; its loads add up to 1000$/,
    ],
    [
      'free money on a blocked card',
      "UPDATE card SET status = 'blocked' WHERE mode = 'live'",
      /^card_\w+: it is blocked, and of its 1000 cents 1000 are free$/,
    ],
  ];
  for (const [what, statement, message] of COUNTED) {
    it(`finds ${what}`, async () => {
      const found = await foundAfter(statement);
      assert.ok(
        found.some((one) => message.test(one)),
        found.join('\n'),
      );
    });
  }

  it('finds a row of another amount, account or state', async () => {
    for (const change of [
      `UPDATE card SET funding_cents = 999 WHERE id = '${cardId}'`,
      `UPDATE card SET partner_id = 'other' WHERE id = '${cardId}'`,
      `UPDATE card SET status = 'funding_pending' WHERE id = '${cardId}'`,
      `DELETE FROM card WHERE id = '${cardId}'`,
      "UPDATE balance_adjustment SET amount_cents = amount_cents + 1 WHERE mode = 'live'",
    ])
      assert.notDeepEqual(await foundAfter(change), [], change);
  });
});
