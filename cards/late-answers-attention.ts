import { sql } from 'kysely';
import { TRANSFERS, type TransferDirection } from '../domain/transfer.ts';
import type { Orm } from '../platform/db/orm.ts';
import { readStatement } from '../platform/db/sql.ts';
import { type AttentionItem, atIssuer } from '../platform/monitoring/attention-item.ts';
import type { LateDecision, LateKind, WhyNotBooked } from './late-answers-tables.ts';

/** Operations that have ended, about which the network says something else than our record. */
export async function readContradictions(orm: Orm): Promise<AttentionItem[]> {
  const rows = await contradictions(orm.em.fork(), {});
  return rows.map((row) => {
    const { id, kind, said, partner_id, network_card_id, can_be_blocked, since, decision } = row;
    const item = {
      kind: 'network_contradiction' as const,
      id,
      partner_id,
      mode: 'live' as const,
      since: new Date(since).toISOString(),
      at_issuer: atIssuer({ amountCents: row.amount_cents, token: id, card: network_card_id }),
      workflow_id: null,
    };
    const dismiss = `npm run operator -- ${kind} dismiss ${id} --reason "…"`;
    if (kind !== 'card' && said === 'yes') {
      const refused = decision?.refused === undefined ? '' : `; ${NOT_BOOKED[kind][decision.refused]}`;
      return {
        ...item,
        reason: `by our record the ${TRANSFERS[kind].noun} failed, and the network has ${MADE[kind]}: book it now${row.is_blocked && kind === 'topup' ? RELEASED : ''}${refused}`,
        command: `npm run operator -- ${kind} book ${id} --reason "…"`,
        or_command: dismiss,
      };
    }
    if (can_be_blocked && said === 'no') {
      return {
        ...item,
        reason: CARD_NOT_ISSUED,
        command: `npm run operator -- card block ${id} --reason "…"`,
        or_command: dismiss,
      };
    }
    return { ...item, reason: reasonFor(kind, said, network_card_id), command: dismiss, or_command: null };
  });
}

function reasonFor(kind: LateKind, said: 'yes' | 'no', networkCardId: string | null): string {
  if (kind !== 'card') return NOT_MADE[kind];
  return said === 'yes' ? cardIssued(networkCardId) : CARD_NOT_ISSUED;
}

const cardIssued = (networkCardId: string | null): string =>
  `by our record the issuance failed, and the network has issued the card as ${networkCardId}: have the network close it, then dismiss this`;
const CARD_NOT_ISSUED =
  'by our record the card is issued, and the network says that it is not: block it, which returns its balance, give its ' +
  'fees back with "partner adjust", then dismiss this';
const MADE = { topup: 'loaded the card', withdrawal: 'taken the money off the card' } as const;
const RELEASED =
  ', without a fee; as the card is blocked, the money is back in the balance at once, and the network moves it back';
const NOT_MADE = {
  topup:
    'by our record the top-up succeeded, and the network says that it has not loaded the card: have the network load it, then ' +
    'dismiss this',
  withdrawal:
    'by our record the withdrawal succeeded, and the network says that it has not taken the money off the card: have the ' +
    'network take it, then dismiss this',
} as const;

const NOT_RECORDABLE = "booking it failed because of an error of ours: see the worker's log, then book again";
/** Why a transfer that an operator wanted booked was not. */
export const NOT_BOOKED: Record<TransferDirection, Record<WhyNotBooked, string>> = {
  topup: {
    insufficient_funds: "the partner's balance does not cover it: have it funded, then book again",
    card_closed:
      'its card was never issued by our record, so it cannot take the money: settle that with the network, then dismiss this',
    not_recordable: NOT_RECORDABLE,
  },
  withdrawal: {
    insufficient_funds:
      "the card's available balance does not cover it any more: settle that with the network, then dismiss this",
    card_closed:
      'its card is closed by our record, and its money is in the prepaid balance already: dismiss this',
    not_recordable: NOT_RECORDABLE,
  },
};

interface Contradiction {
  id: string;
  kind: LateKind;
  said: 'yes' | 'no';
  partner_id: string | null;
  /** Of the card that was issued, or that the money was for. */
  network_card_id: string | null;
  amount_cents: string | null;
  can_be_blocked: boolean;
  is_blocked: boolean;
  since: string;
  decision: LateDecision | null;
}

const contradictions = readStatement(
  () => sql<Contradiction>`
    SELECT id, kind, said, partner_id, contradicts_since AS since, decision, amount_cents,
      coalesce(network_card_id,
        (SELECT k.network_card_id FROM card k WHERE k.id = coalesce(late_answer.card_id, late_answer.id)))
        AS network_card_id,
      EXISTS (SELECT FROM card k WHERE k.id = late_answer.id
        AND k.status IN ('active', 'frozen')) AS can_be_blocked,
      EXISTS (SELECT FROM card k WHERE k.id = late_answer.card_id AND k.status = 'blocked') AS is_blocked
    FROM late_answer
    WHERE contradicts_since IS NOT NULL AND decision ->> 'outcome' IS DISTINCT FROM 'dismissed'`,
  { acrossTenants: 'measurement' },
);
