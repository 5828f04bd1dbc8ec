import type { EntityManager } from '@mikro-orm/postgresql';
import { query } from '../../db/sql.ts';
import { transaction } from '../../db/transaction.ts';
import { ApiError } from '../../domain/api-error.ts';
import { refusalOf } from '../../domain/card-status.ts';
import { MAX_AMOUNT_CENTS } from '../../domain/money.ts';
import { readBalance, readCardBalance } from '../../ledger/balances.ts';
import type { CardRow } from '../../resources/card.ts';
import type { CommandContext } from '../command-context.ts';
import { refuseClaim } from '../idempotency/answer-claim.ts';
import { lockStatusChange } from './lock-status-change.ts';
import { releaseNotPossible } from './release-blocked-card.ts';

/**
 * `opened`: it is this change's turn, the network decides next. `busy`: another change of the card is under way at the
 * network, and this one is judged by what it leaves behind. `answered`: it is over.
 */
export type StatusChangeOpening = 'opened' | 'busy' | 'answered';

/**
 * The first step of a freeze, unfreeze or block in live mode: marks the card, so that no other change of it is asked for
 * meanwhile. Where the card's status does not allow it the refusal is the claim's answer. Run again it changes nothing
 * and says the same.
 */
export function openStatusChange(
  { orm, ring }: CommandContext,
  claimId: string,
): Promise<StatusChangeOpening> {
  return transaction(orm, async (tx) => {
    const locked = await lockStatusChange(tx, claimId);
    if (locked === null) return 'answered';
    const { card, operation } = locked;
    if (card.status_change_claim_id === claimId) return 'opened';
    if (card.status_change_claim_id !== null) return 'busy';

    const refusal =
      refusalOf(card.status, operation) ??
      refusalOfUnknown(card) ??
      (operation === 'block_card' ? await refusalOfRelease(tx, card) : null);
    if (refusal !== null) {
      await refuseClaim(tx, ring, claimId, refusal);
      return 'answered';
    }
    await query(tx, 'UPDATE card SET status_change_claim_id = $2 WHERE id = $1', [card.id, claimId]);
    return 'opened';
  });
}

/** Where nothing changes until the network has answered, what is on the card has a place to go. */
async function refusalOfRelease(tx: EntityManager, card: CardRow): Promise<ApiError | null> {
  const { totalCents } = await readBalance(tx, card.partner_id, card.mode);
  const fits = BigInt(totalCents) + BigInt(await readCardBalance(tx, card.id)) <= BigInt(MAX_AMOUNT_CENTS);
  return fits ? null : releaseNotPossible();
}

/**
 * A card that an operator took for issued while the network said nothing has no id there. It can't be told to decline,
 * and a card that only we call frozen or blocked would be worse than a refusal.
 */
function refusalOfUnknown(card: CardRow): ApiError | null {
  if (card.network_card_id !== null) return null;
  return new ApiError('invalid_state', {
    message:
      `The card is ${card.status}, but we do not have its id at the card network, so its status cannot be changed. ` +
      'Contact us.',
  });
}
