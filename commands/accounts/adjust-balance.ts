import type { EntityManager } from '@mikro-orm/postgresql';
import { newId } from '../../crypto/new-id.ts';
import { readStatement, type Transactor, writeStatement } from '../../db/sql.ts';
import { transaction } from '../../db/transaction.ts';
import type { Mode } from '../../domain/mode.ts';
import type { Tenant } from '../../domain/tenant.ts';
import { applyOperation } from '../../ledger/apply-operation.ts';
import { LedgerRejected } from '../../ledger/ledger-error.ts';
import type { Transfer } from '../../ledger/operation.ts';
import type { BalanceCents } from '../../resources/balance.ts';
import { Refusal } from '../idempotency/refusal.ts';
import { lockPartner } from './lock-partner.ts';
import { type Operator, recordAudit } from './operator-context.ts';

export interface BalanceAdjustment {
  partnerId: string;
  mode: Mode;
  /** Above zero a credit, below it a debit. */
  amountCents: number;
  reason: string;
  /** Makes it idempotent, within the account and mode. */
  key: string | null;
}

export interface AdjustedBalance {
  adjustmentId: string;
  createdAt: Date;
  /** Right after the adjustment. */
  balance: BalanceCents;
}

/**
 * Credits or debits the prepaid balance by hand. The same adjustment under the same key has one effect and gets the
 * same answer.
 * @throws Refusal where there is no such account, the available balance does not cover a debit, or the key was used for
 * another adjustment: then nothing has changed.
 */
export function adjustBalance(
  { orm, actor }: Operator,
  adjustment: BalanceAdjustment,
): Promise<AdjustedBalance> {
  const { partnerId, mode, amountCents, reason, key } = adjustment;
  return transaction(orm, async (tx) => {
    await lockPartner(tx, partnerId);
    const made = key === null ? undefined : await readMade(tx, adjustment, key);
    const { id, created_at } = made ?? (await insert(tx, adjustment));
    const balance = await move(tx, id, adjustment);
    if (made === undefined) {
      recordAudit(tx, actor, 'partner.adjust', partnerId, {
        adjustmentId: id,
        mode,
        amountCents,
        reason,
        key,
      });
    }
    return { adjustmentId: id, createdAt: new Date(created_at), balance };
  });
}

interface Made {
  id: string;
  created_at: string;
}

/** The lock of the account makes this sure: of two with one key the second finds the first. */
async function readMade(
  tx: EntityManager,
  { partnerId, mode, amountCents, reason }: BalanceAdjustment,
  key: string,
): Promise<Made | undefined> {
  const [made] = await adjustmentWith(tx, { partnerId, mode, key });
  if (made !== undefined && (Number(made.amount_cents) !== amountCents || made.reason !== reason)) {
    throw new Refusal(
      `The key "${key}" was already used for a different adjustment, ${made.id} of ${made.amount_cents} cents ` +
        `(${made.reason}): use a new key for each adjustment.`,
    );
  }
  return made;
}

const adjustmentWith = readStatement((db, { partnerId, mode, key }: Tenant & { key: string }) =>
  db
    .selectFrom('balance_adjustment')
    .select(['id', 'created_at', 'amount_cents', 'reason'])
    .where('partner_id', '=', partnerId)
    .where('mode', '=', mode)
    .where('key', '=', key),
);

async function insert(tx: Transactor, { amountCents, ...adjustment }: BalanceAdjustment): Promise<Made> {
  const [made] = await insertAdjustment(tx, {
    ...adjustment,
    id: newId('adj'),
    amountCents: String(amountCents),
  });
  return made as Made;
}

type NewAdjustment = Omit<BalanceAdjustment, 'amountCents'> & { id: string; amountCents: string };

const insertAdjustment = writeStatement((db, adjustment: NewAdjustment) =>
  db
    .insertInto('balance_adjustment')
    .values({
      id: adjustment.id,
      partner_id: adjustment.partnerId,
      mode: adjustment.mode,
      amount_cents: adjustment.amountCents,
      reason: adjustment.reason,
      key: adjustment.key,
    })
    .returning(['id', 'created_at']),
);

async function move(
  tx: EntityManager,
  id: string,
  { partnerId, mode, amountCents }: BalanceAdjustment,
): Promise<BalanceCents> {
  const flow: Pick<Transfer, 'code' | 'debit' | 'credit'> =
    amountCents > 0
      ? { code: 'adjustment_credit', debit: 'adjustment', credit: 'prepaid' }
      : { code: 'adjustment_debit', debit: 'prepaid', credit: 'adjustment' };
  const transfer: Transfer = { step: 'adjust', phase: 'single', amountCents: Math.abs(amountCents), ...flow };
  const moved = await applyOperation(tx, {
    operationId: `adjust/${id}`,
    partnerId,
    mode,
    transfers: [transfer],
  }).catch((error: unknown) => {
    if (!(error instanceof LedgerRejected) || error.reason !== 'balance_out_of_range') throw error;
    throw new Refusal('The balance would exceed its maximum: adjust it by less.');
  });
  if (moved.outcome === 'insufficient_funds') {
    throw new Refusal(
      `The available ${mode} balance does not cover this debit, so nothing has changed: see ` +
        `"operator ledger balance ${partnerId} --mode ${mode}".`,
    );
  }
  if (moved.prepaid === null) throw new Error('an adjustment moves the prepaid balance');
  return moved.prepaid;
}
