import assert from 'node:assert/strict';
import { applyPosting } from '../../ledger/apply-posting.ts';
import { openLedger, type TestLedger } from '../support/ledger/open-ledger.ts';
import { cardHold, operation, transfer } from '../support/ledger/operations.ts';

const RESTRICT_VIOLATION = '23001';
const INTEGRITY_CONSTRAINT_VIOLATION = '23000';

const COPY_TRANSFER = `INSERT INTO ledger.transfer
    (id, fingerprint, operation_id, partner_id, mode, code, phase, pending_id, debit_id, credit_id, amount)
  SELECT '00000000-0000-0000-0000-00000000000a', '', 'copy', partner_id, mode, code, phase, pending_id, debit_id, credit_id, amount
  FROM ledger.transfer WHERE operation_id = `;
const entry = (
  side: string,
  accountId: string,
  amount: number,
  of = `'00000000-0000-0000-0000-00000000000a'`,
) =>
  `INSERT INTO ledger.entry (transfer_id, side, account_id, amount) VALUES (${of}, '${side}', '${accountId}', ${amount})`;
const PENDING = `(SELECT id FROM ledger.transfer WHERE phase = 'pending' LIMIT 1)`;
const OPENING = `(SELECT id FROM ledger.transfer WHERE operation_id = 'credit')`;

describe("the ledger's write protection", () => {
  let ledger: TestLedger;

  before(async () => {
    ledger = await openLedger();
    await applyPosting(ledger.em, operation('credit', transfer('fund_faucet', 1_000)));
    await applyPosting(ledger.em, operation('held', ...cardHold(100, 1)));
  });

  after(() => ledger.close());

  const asOwner = async (...statements: string[]) => {
    await ledger.owner.query('BEGIN');
    try {
      for (const statement of statements) await ledger.owner.query(statement);
      await ledger.owner.query('COMMIT');
    } catch (error) {
      await ledger.owner.query('ROLLBACK');
      throw error;
    }
  };

  it('denies updates and deletes to the owner too', async () => {
    for (const table of ['transfer', 'entry']) {
      const denied = [
        `UPDATE ledger.${table} SET amount = amount`,
        `UPDATE ledger.${table} SET amount = 1 WHERE false`,
        `DELETE FROM ledger.${table}`,
        `DELETE FROM ledger.${table} WHERE false`,
        `TRUNCATE ledger.${table}`,
      ];
      for (const statement of denied) {
        await assert.rejects(asOwner(statement), { code: RESTRICT_VIOLATION }, statement);
      }
    }
    await assert.rejects(asOwner('DELETE FROM ledger.account'), { code: RESTRICT_VIOLATION });
    await assert.rejects(asOwner('TRUNCATE ledger.account'), { code: RESTRICT_VIOLATION });
  });

  const unbalanced: Record<string, string[]> = {
    'a transfer without entries': [`${COPY_TRANSFER}'credit'`],
    'a transfer with one entry': [`${COPY_TRANSFER}'credit'`, entry('debit', 'faucet/test/prt_1', 1_000)],
    'entries of another amount': [
      `${COPY_TRANSFER}'credit'`,
      entry('debit', 'faucet/test/prt_1', 999),
      entry('credit', 'prepaid/test/prt_1', 999),
    ],
    'an entry on another account': [
      `${COPY_TRANSFER}'credit'`,
      entry('debit', 'faucet/test/prt_1', 1_000),
      entry('credit', 'prepaid/test/prt_2', 1_000),
    ],
    'entries the wrong way round': [
      `${COPY_TRANSFER}'credit'`,
      entry('credit', 'faucet/test/prt_1', 1_000),
      entry('debit', 'prepaid/test/prt_1', 1_000),
    ],
    'an entry of no transfer': [entry('debit', 'faucet/test/prt_1', 5)],
    'entries of a pending transfer': [
      entry('debit', 'prepaid/test/prt_1', 100, PENDING),
      entry('credit', 'card/card_1', 100, PENDING),
    ],
  };
  for (const [what, statements] of Object.entries(unbalanced)) {
    it(`refuses ${what} at commit`, async () => {
      await assert.rejects(asOwner(...statements), { code: INTEGRITY_CONSTRAINT_VIOLATION });
    });
  }

  it('checks at commit and not before, so that entries may come first', async () => {
    await asOwner(
      entry('debit', 'faucet/test/prt_1', 1_000),
      entry('credit', 'prepaid/test/prt_1', 1_000),
      `${COPY_TRANSFER}'credit'`,
    );
  });

  it('allows one entry a side', async () => {
    await assert.rejects(asOwner(entry('debit', 'faucet/test/prt_1', 1_000, OPENING)), { code: '23505' });
  });

  it('allows no amounts, holds or card balances out of range', async () => {
    for (const amount of ['0', '-1', '9007199254740992']) {
      const copy = `${COPY_TRANSFER}'credit'`.replace('credit_id, amount\n', `credit_id, ${amount}\n`);
      await assert.rejects(asOwner(copy), { constraint: 'transfer_amount_check' });
      await assert.rejects(asOwner(entry('debit', 'faucet/test/prt_1', Number(amount))), {
        constraint: 'entry_amount_check',
      });
    }
    await assert.rejects(asOwner('UPDATE ledger.account SET held = -1 WHERE tracked'), {
      constraint: 'account_held_check',
    });
    await assert.rejects(asOwner(`UPDATE ledger.account SET posted = -1 WHERE kind = 'card'`), {
      constraint: 'card_not_overdrawn',
    });
    await assert.rejects(
      asOwner(`UPDATE ledger.account SET posted = 9007199254740992 WHERE kind = 'prepaid'`),
      {
        constraint: 'account_posted_check',
      },
    );
  });
});
