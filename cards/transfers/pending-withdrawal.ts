import type { Posting } from '../../ledger/posting.ts';
import { CARD_COLUMNS, of, WITHDRAWAL_COLUMNS } from '../../platform/db/columns.ts';
import { type Transactor, writeStatement } from '../../platform/db/sql.ts';
import type { CardRow } from '../resource.ts';
import type { WithdrawalRow } from './withdrawal-resource.ts';

/** A claim of a withdrawal and its card, which the transaction holds. */
interface ClaimedWithdrawal {
  /** Whether the claim has a response. */
  answered: boolean;
  /** The partner's request, sealed. */
  request: Buffer;
  withdrawalId: string;
  card: CardRow;
}

/** Locks a claim and its card. @returns null if the claim is gone, or is another operation's */
export async function lockClaimAndCard(tx: Transactor, claimId: string): Promise<ClaimedWithdrawal | null> {
  const [claimed] = await claimAndCard(tx, { claimId });
  if (claimed === undefined) return null;
  const { withdrawal_id: withdrawalId, answered, request, ...card } = claimed;
  return { answered, request, withdrawalId, card };
}

const claimAndCard = writeStatement(
  (db, { claimId }: { claimId: string }) =>
    db
      .selectFrom('idempotency_claim as c')
      .innerJoin('card as k', 'k.id', 'c.card_id')
      .select(of('k', CARD_COLUMNS))
      .select(['c.resource_id as withdrawal_id', 'c.request'])
      .select((eb) => eb('c.response_status', 'is not', null).$castTo<boolean>().as('answered'))
      .where('c.id', '=', claimId)
      .where('c.operation', '=', 'withdraw_from_card')
      .$narrowType<{ withdrawal_id: string; request: Buffer }>()
      .forNoKeyUpdate(),
  { acrossTenants: 'id' },
);

/** Locks a withdrawal. Its card is locked already, as for every change of a card's balance. */
export async function lockWithdrawal(
  tx: Transactor,
  withdrawalId: string,
): Promise<WithdrawalRow | undefined> {
  const [locked] = await rowById(tx, { withdrawalId });
  return locked;
}

const rowById = writeStatement(
  (db, { withdrawalId }: { withdrawalId: string }) =>
    db.selectFrom('withdrawal').select(WITHDRAWAL_COLUMNS).where('id', '=', withdrawalId).forNoKeyUpdate(),
  { acrossTenants: 'id' },
);

/** A pending withdrawal, whose claim, card and row the transaction holds. */
export interface PendingWithdrawal {
  claimId: string;
  /** Whether its claim has a response. */
  answered: boolean;
  withdrawal: WithdrawalRow;
  card: CardRow;
}

/** Locks a claim and its card, then its withdrawal. @returns null if that withdrawal is not pending, or not there */
export async function lockPendingWithdrawal(
  tx: Transactor,
  claimId: string,
): Promise<PendingWithdrawal | null> {
  const claimed = await lockClaimAndCard(tx, claimId);
  if (claimed === null) return null;
  const { answered, card, withdrawalId } = claimed;
  const withdrawal = await lockWithdrawal(tx, withdrawalId);
  return withdrawal?.status === 'pending' ? { claimId, answered, withdrawal, card } : null;
}

/**
 * The ledger's side of a withdrawal in one phase: held on the card (`pending`), then posted or released (`void`); or moved at
 * once (`single`) if there is nothing to wait for. One operation id for all of them, so each phase happens once.
 */
export function withdrawalPosting(
  withdrawal: WithdrawalRow,
  phase: 'single' | 'pending' | 'post' | 'void',
): Posting {
  const flow = {
    code: 'withdrawal',
    debit: { cardId: withdrawal.card_id },
    credit: 'prepaid',
    amountCents: Number(withdrawal.amount_cents),
  } as const;
  return {
    operationId: `withdrawal/${withdrawal.id}`,
    partnerId: withdrawal.partner_id,
    mode: withdrawal.mode,
    transfers: [
      phase === 'single' || phase === 'pending'
        ? { ...flow, step: 'withdrawal', phase }
        : { ...flow, step: `withdrawal:${phase}`, phase, resolves: 'withdrawal' },
    ],
  };
}
