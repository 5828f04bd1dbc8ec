import { sql } from 'kysely';
import { heldClock } from '../accounts/clock.ts';
import { ApiError } from '../domain/api-error.ts';
import {
  type CardStatus,
  STATUS_CHANGES,
  type StatusChangeOperation,
  statusChangeRefusal,
} from '../domain/card-status.ts';
import type { Tenant } from '../domain/mode.ts';
import type { StatusChangeRequest } from '../issuers/card-network.ts';
import { readCardBalance } from '../ledger/balances.ts';
import { cte, readStatement, type Transactor, withCtes, writeStatement } from '../platform/db/sql.ts';
import { transaction } from '../platform/db/transaction.ts';
import type { CommandContext, OpenCommand } from '../requests/command-context.ts';
import { claimOutcome, endClaim, type OutcomeValues, outcomeResponse } from '../requests/outcome.ts';
import { type StoredResponse, storeError } from '../requests/response.ts';
import { blockRefusal, failMostTopUps, lockPendingTopUps, releaseBlockedCard } from './block.ts';
import { type LockedCard, lockCard, neverIssued } from './lock-card.ts';
import type { CardRow } from './resource.ts';
import { changeOutcome } from './row.ts';

// A freeze, unfreeze or block by a workflow: all of live mode, and an operator's in test mode. Changes of one
// live card take turns, the oldest first: while the card network is asked for one, the card's row carries its
// claim as a mark, and the others wait (docs/decisions/status-changes-one-at-a-time.md).

/**
 * `begun`: the network is to be asked next, for the first time or again. `busy`: another change of the card
 * comes first, and this one has to wait for its outcome. `answered`: the change is over and its claim has a
 * response, which is here if this run stored it.
 */
type BegunStatusChange =
  | { state: 'begun'; asked: StatusChangeRequest; isFirst: boolean }
  | { state: 'busy' }
  | { state: 'answered'; response: StoredResponse | null };

/**
 * Begins a change: marks the card, so that no other change is asked for meanwhile. If the card's status does
 * not allow the change, or its creation was refused, the claim gets the refusal as its answer. A test card is
 * changed at once, because no network has it. Run again, it changes nothing and returns the same.
 */
export function beginStatusChange(
  { orm, ring }: CommandContext,
  claimId: string,
): Promise<BegunStatusChange> {
  return transaction(orm, async (tx) => {
    const locked = await lockStatusChange(tx, claimId);
    if (locked === 'over') return { state: 'answered', response: null };
    if (locked === 'never_issued')
      return { state: 'answered', response: await storeError({ tx, ring }, claimId, neverIssued()) };
    const { card, operation } = locked;
    const { status_change_claim_id: underWay } = card;
    if (underWay !== null && underWay !== claimId) return { state: 'busy' };
    if (underWay === null) {
      if (operation !== 'block_card' && (await waitsForOlder(tx, claimId, card))) return { state: 'busy' };
      const refusal =
        statusChangeRefusal(card.status, operation) ??
        (operation === 'block_card' ? await blockRefusal(tx, card) : null);
      if (refusal !== null)
        return { state: 'answered', response: await storeError({ tx, ring }, claimId, refusal) };
      if (card.mode === 'test') {
        const { response } = await apply({ tx, ring }, claimId, locked);
        return { state: 'answered', response };
      }
      await setMark(tx, { ...cardTenant(card), cardId: card.id, claimId });
    }
    // The table has it that every card in use has one.
    const networkCardId = card.network_card_id as string;
    const { to: cardStatus } = STATUS_CHANGES[operation];
    const asked = { token: claimId, networkCardId, cardStatus };
    return { state: 'begun', asked, isFirst: underWay === null };
  });
}

/** Whose responses are ready once a change has ended. */
interface StatusChangeResponses {
  /** The claim's response; null if the change was over already. */
  response: StoredResponse | null;
  /** The claims of top-ups that a block has ended, which have their responses, too. */
  topUpClaimIds: string[];
}

/**
 * Makes a change that the network has applied: the card, its event, the claim's response, and what else a
 * block does. Also removes the mark, so that the next change can begin. Does nothing if the change is over.
 * @throws Error if the change has not begun
 */
export async function completeStatusChange(
  context: CommandContext,
  claimId: string,
): Promise<StatusChangeResponses> {
  const earlier = await failMostTopUps(context, claimId);
  const { response, topUpClaimIds } = await endStatusChange(context, claimId, (tx, locked) =>
    apply({ tx, ring: context.ring }, claimId, locked),
  );
  return { response, topUpClaimIds: [...earlier, ...topUpClaimIds] };
}

async function apply(
  command: OpenCommand,
  claimId: string,
  { operation, card: before }: LockedStatusChange,
): Promise<StatusChangeResponses> {
  const { tx, ring } = command;
  const { to, event: type } = STATUS_CHANGES[operation];
  const card = { ...before, status: to };
  const topUpClaimIds = to === 'blocked' ? await releaseBlockedCard(command, card) : [];
  const outcome = changeOutcome(type, card, await readCardBalance(tx, cardTenant(card), card.id));
  const ended = claimOutcome(ring, claimId, outcome, before.clock);
  await writeChange(tx, { ...cardTenant(card), ...ended, cardId: card.id, status: to });
  return { response: outcomeResponse(outcome), topUpClaimIds };
}

/**
 * Ends a change that the network has refused: nothing changes, and the claim's answer is 409 `invalid_state`.
 */
export function refuseStatusChange(context: CommandContext, claimId: string): Promise<StatusChangeResponses> {
  return endStatusChange(context, claimId, async (tx, { card }) => {
    await setMark(tx, { ...cardTenant(card), cardId: card.id, claimId: null });
    const message = `The card network refused the change. The card is still ${card.status}.`;
    const refusal = new ApiError('invalid_state', { message });
    return { response: await storeError({ tx, ring: context.ring }, claimId, refusal), topUpClaimIds: [] };
  });
}

function endStatusChange(
  { orm }: CommandContext,
  claimId: string,
  end: (tx: Transactor, locked: LockedStatusChange) => Promise<StatusChangeResponses>,
): Promise<StatusChangeResponses> {
  return transaction(orm, async (tx) => {
    const locked = await lockStatusChange(tx, claimId);
    if (locked === 'over') return { response: null, topUpClaimIds: [] };
    if (locked === 'never_issued' || locked.card.status_change_claim_id !== claimId)
      throw new Error(`${claimId} is not under way`);
    return end(tx, locked);
  });
}

interface LockedStatusChange {
  operation: StatusChangeOperation;
  card: LockedCard;
}

/**
 * Holds the account's clock, then locks the claim of a status change and its card, and between them what else
 * a block changes.
 * @returns `over` if the claim is answered, or forgotten; `never_issued` if the card's creation was refused
 * after the claim was made, so that there is no card
 */
async function lockStatusChange(
  tx: Transactor,
  claimId: string,
): Promise<LockedStatusChange | 'over' | 'never_issued'> {
  const [claim] = await lockClaim(tx, { claimId });
  if (claim === undefined || claim.response_status !== null) return 'over';
  const { operation, card_id: cardId } = claim;
  const tenant = { partnerId: claim.partner_id, mode: claim.mode };
  if (operation === 'block_card') await lockPendingTopUps(tx, tenant, cardId);
  const card = await lockCard(tx, tenant, cardId);
  return card === undefined ? 'never_issued' : { operation, card };
}

const lockClaim = writeStatement(
  (db, { claimId }: { claimId: string }) =>
    db
      .selectFrom('idempotency_claim')
      .select(['operation', 'partner_id', 'mode', 'card_id', 'response_status'])
      .select(heldClock(sql.ref('partner_id'), sql.ref('mode')).as('clock'))
      .where('id', '=', claimId)
      .forNoKeyUpdate()
      .$narrowType<{ operation: StatusChangeOperation; card_id: string }>(),
  { acrossTenants: 'id' },
);

/** Whether an older change of the card has no response yet. A block waits for none, because it is urgent. */
async function waitsForOlder(tx: Transactor, claimId: string, card: CardRow): Promise<boolean> {
  const older = await olderChange(tx, { ...cardTenant(card), cardId: card.id, claimId });
  return older.length > 0;
}

// After the card is locked, because the change before is answered under that lock.
const olderChange = readStatement(
  (db, { partnerId, mode, cardId, claimId }: Tenant & { cardId: string; claimId: string }) =>
    db
      .selectFrom('idempotency_claim')
      .select('id')
      .where('partner_id', '=', partnerId)
      .where('mode', '=', mode)
      .where('card_id', '=', cardId)
      .where('id', '<', claimId)
      .where('operation', 'in', Object.keys(STATUS_CHANGES) as StatusChangeOperation[])
      .where('response_status', 'is', null)
      .limit(sql.lit(1)),
);

const cardTenant = (card: CardRow): Tenant => ({ partnerId: card.partner_id, mode: card.mode });

const setMark = writeStatement(
  (db, { partnerId, mode, cardId, claimId }: Tenant & { cardId: string; claimId: string | null }) =>
    db
      .updateTable('card')
      .set({ status_change_claim_id: claimId })
      .where('id', '=', cardId)
      .where('partner_id', '=', partnerId)
      .where('mode', '=', mode),
);

/** Writes the card's new status, removes its mark, and writes the outcome. */
const writeChange = writeStatement(
  (db, values: Tenant & OutcomeValues & { cardId: string; status: CardStatus }) => {
    const changed = cte(
      'changed',
      db
        .updateTable('card')
        .set({ status: values.status, status_change_claim_id: null })
        .where('id', '=', values.cardId)
        .where('partner_id', '=', values.partnerId)
        .where('mode', '=', values.mode)
        .returning(['partner_id', 'mode']),
    );
    return sql`${withCtes([changed, ...endClaim(changed, values)])} SELECT FROM ${changed.rows}`;
  },
);
