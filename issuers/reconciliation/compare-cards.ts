import { sql } from 'kysely';
import type { CardStatus } from '../../domain/card-status.ts';
import type { Orm } from '../../platform/db/orm.ts';
import { readStatement } from '../../platform/db/sql.ts';
import type { ListedCard } from '../card-network.ts';
import type { Finding } from './findings.ts';

/** What a comparison says about one object. `under_way`: it is about to become the same. */
export type Verdict = 'matched' | 'under_way' | Finding;

/** Compares cards as the network lists them with ours. @returns in their order */
export async function compareCards(orm: Orm, listed: readonly ListedCard[]): Promise<Verdict[]> {
  const rows = await ours(orm.em.fork(), {
    networkCardIds: listed.map(({ networkCardId }) => networkCardId),
    tokens: listed.map(({ token }) => token),
  });
  return listed.map((card, index) => verdict(card, rows[index] as OurCard));
}

interface OurCard {
  /** The card with the network's id. */
  id: string | null;
  status: CardStatus | null;
  /** The card that the network's record names. */
  named_id: string | null;
  named_status: CardStatus | null;
  is_changing: boolean;
}

function verdict({ networkCardId, status }: ListedCard, ours: OurCard): Verdict {
  const finding = { kind: 'card' as const, issuerId: networkCardId };
  if (ours.id !== null && ours.status !== null) {
    if (ours.status === status) return 'matched';
    if (ours.is_changing || ours.status === 'funding_pending') return 'under_way';
    return {
      ...finding,
      problem: 'different',
      id: ours.id,
      detail: `the card is ${ours.status} here and ${status} at the issuer`,
    };
  }
  const { named_id: id } = ours;
  if (id === null) {
    const detail = `the issuer has a card, ${status}, that we don't know`;
    return { ...finding, problem: 'missing_here', id, detail };
  }
  if (ours.named_status === 'funding_pending' || ours.is_changing) return 'under_way';
  // What the network undid: the card of an issuance that failed, or a second one.
  if (status === 'blocked') return 'matched';
  const detail =
    ours.named_status === 'failed'
      ? `the issuance failed by our record, and the issuer has its card, ${status}`
      : `the issuer has this card, ${status}, for a card of ours that has another id there`;
  return { ...finding, problem: 'missing_here', id, detail };
}

const ours = readStatement(
  (_, { networkCardIds, tokens }: { networkCardIds: string[]; tokens: (string | null)[] }) => sql<OurCard>`
    SELECT c.id, c.status, t.id AS named_id, t.status AS named_status,
      (c.status_change_claim_id IS NOT NULL OR (t.id IS NOT NULL AND t.status <> 'failed' AND t.network_card_id IS NULL))
        AS is_changing
    FROM unnest(${networkCardIds}::text[], ${tokens}::text[]) WITH ORDINALITY l (network_card_id, token, n)
    LEFT JOIN card c ON c.network_card_id = l.network_card_id AND c.mode = 'live'
    LEFT JOIN card t ON t.id = l.token AND t.mode = 'live'
    ORDER BY l.n`,
  { acrossTenants: 'network' },
);

/** A page of those of our cards whose freeze, unfreeze or block began before a time, the latest first. */
interface ChangesPage {
  runId: string;
  /** The page's claims are below this one, and above `from`. */
  before: string;
  from: string;
  /** The cards are below this one. Others are in the network's list. */
  olderThan: string;
  limit: number;
}

export interface ChangedCard {
  claim_id: string;
  id: string | null;
  /**
   * The network's id of a card that it has to be asked about; null if it was seen, or the claim is about
   * something else.
   */
  network_card_id: string | null;
  detail: string | null;
}

/** A page of claims, with the cards whose status was changed and which the run has not seen. */
export const readChangedCards = readStatement(
  (_, { runId, before, from, olderThan, limit }: ChangesPage) => sql<ChangedCard>`
    SELECT l.id AS claim_id, c.id, c.network_card_id, 'the card is ' || c.status || ' here' AS detail
    FROM (SELECT id, mode, operation, card_id FROM idempotency_claim
      WHERE id < ${before} AND id > ${from} ORDER BY id DESC LIMIT ${limit}) l
    LEFT JOIN card c ON c.id = l.card_id AND l.mode = 'live' AND l.operation IN ('freeze_card', 'unfreeze_card', 'block_card')
      AND c.id < ${olderThan} AND c.network_card_id IS NOT NULL AND NOT EXISTS (
        SELECT FROM reconciliation_seen WHERE run_id = ${runId} AND kind = 'card' AND key = c.network_card_id)
    ORDER BY l.id DESC`,
  { acrossTenants: 'network' },
);

/** Such cards about which there is a finding. */
export const readOpenCards = readStatement(
  (
    _,
    { runId, network, olderThan, limit }: Omit<ChangesPage, 'before' | 'from'> & { network: string },
  ) => sql<Omit<ChangedCard, 'claim_id'>>`
    SELECT c.id, c.network_card_id, 'the card is ' || c.status || ' here' AS detail FROM reconciliation_finding f JOIN card c ON c.id = f.object_id AND c.mode = 'live'
    WHERE f.network = ${network} AND f.kind = 'card' AND c.id < ${olderThan} AND c.network_card_id IS NOT NULL AND NOT EXISTS (
      SELECT FROM reconciliation_seen WHERE run_id = ${runId} AND kind = 'card' AND key = c.network_card_id)
    ORDER BY f.id DESC LIMIT ${limit}`,
  { acrossTenants: 'network' },
);
