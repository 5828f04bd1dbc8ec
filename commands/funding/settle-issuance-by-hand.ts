import type { EntityManager } from '@mikro-orm/postgresql';
import { query } from '../../db/sql.ts';
import { transaction } from '../../db/transaction.ts';
import type { IssuedCard } from '../../domain/card.ts';
import type { IssuanceDecision, Verdict, WhyNot } from '../../domain/decision.ts';
import { siblingId } from '../../domain/ids.ts';
import { lockCard } from '../card-status/lock-card.ts';
import type { CommandContext } from '../command-context.ts';
import { lockUsageAndClaim } from '../idempotency/lock-claim.ts';
import { postIssuance } from './activate-card.ts';
import { checkDecision, refuseDecision } from './decision.ts';
import { voidIssuance } from './fail-issuance.ts';

/** What the network says of a card it has not said to be issued: the card it has made, none, or nothing at all. */
export type SilentNetwork = { card: IssuedCard | null } | 'away';

/**
 * Carries out what somebody decided about an issuance whose network stays silent, if it may be: it is past its deadline
 * by `deadlineMs`, no operator has decided otherwise, and a card that becomes active has its id at the network, since it
 * could never be frozen, blocked or topped up without. Effect and audit are one transaction; what is over stays as it is.
 */
export function settleIssuanceByHand(
  { orm, ring }: CommandContext,
  claimId: string,
  told: IssuanceDecision,
  network: SilentNetwork,
  deadlineMs: number,
): Promise<Verdict> {
  const cardId = siblingId('card', claimId);
  return transaction(orm, async (tx): Promise<Verdict> => {
    const claim = await lockUsageAndClaim(tx, claimId);
    const card = await lockCard(tx, cardId);
    if (claim === null || card?.status !== 'funding_pending') return { settled: true };
    const about = { partnerId: card.partner_id, mode: card.mode };
    const checked = await checkDecision(tx, { table: 'card', id: cardId, about }, told, deadlineMs);
    if ('because' in checked) return checked;
    if (checked.decision.outcome === 'failed') {
      await voidIssuance(tx, ring, claim, card, 'operator_failed');
    } else {
      const issued = await identify(tx, cardId, network, checked.decision.networkCardId);
      if (typeof issued === 'string') return refuseDecision(tx, 'card', cardId, issued);
      await postIssuance(tx, ring, claimId, card, issued);
    }
    checked.audit();
    return { settled: true };
  });
}

/** The card at the network, as it and a person say; or why it can't be told. */
export async function identify(
  tx: EntityManager,
  cardId: string,
  network: SilentNetwork,
  networkCardId: string | undefined,
): Promise<IssuedCard | WhyNot> {
  const known = network === 'away' ? null : network.card;
  if (known !== null) {
    return networkCardId === undefined || networkCardId === known.networkCardId
      ? known
      : 'other_id_at_network';
  }
  if (networkCardId === undefined) return network === 'away' ? 'network_away' : 'unknown_to_network';
  if (await isIdOfAnother(tx, cardId, networkCardId)) return 'id_of_another_card';
  return { networkCardId, last4: null, expMonth: null, expYear: null };
}

/** Whether another of our live cards has this id at the network. */
export async function isIdOfAnother(
  tx: EntityManager,
  cardId: string,
  networkCardId: string,
): Promise<boolean> {
  const others = await query(
    tx,
    `SELECT FROM card WHERE network_card_id = $1 AND mode = 'live' AND id <> $2`,
    [networkCardId, cardId],
  );
  return others.length > 0;
}
