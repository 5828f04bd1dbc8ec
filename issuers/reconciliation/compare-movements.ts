import { sql } from 'kysely';
import { TRANSFERS } from '../../domain/transfer.ts';
import type { Orm } from '../../platform/db/orm.ts';
import { readStatement } from '../../platform/db/sql.ts';
import type { ListedMovement } from '../card-network.ts';
import type { Verdict } from './compare-cards.ts';

/**
 * Compares movements of money as the network lists them with what we asked it for. @returns in their order
 */
export async function compareMovements(orm: Orm, listed: readonly ListedMovement[]): Promise<Verdict[]> {
  const rows = await ours(orm.em.fork(), {
    kinds: listed.map(({ kind }) => kind),
    tokens: listed.map(({ token }) => token),
  });
  return listed.map((movement, index) => verdict(movement, rows[index] as OurMovement));
}

interface OurMovement {
  id: string | null;
  /**
   * `overtaken`: a true-up that an operator had asked again with another token. `dismissed`: one that needs
   * nothing more.
   */
  outcome: 'pending' | 'succeeded' | 'failed' | 'overtaken' | 'dismissed' | null;
  cents: string | null;
  /**
   * A transfer was asked for with this id of its card's at the network, which it has not got any more; else
   * null.
   */
  was_of: string | null;
}

const WORDS = {
  issuance: 'issuance',
  topup: TRANSFERS.topup.noun,
  withdrawal: TRANSFERS.withdrawal.noun,
  true_up: 'true-up',
} as const;

function verdict(listed: ListedMovement, { id, outcome, cents, was_of: wasOf }: OurMovement): Verdict {
  const { kind, amountCents, status, networkMovementId: issuerId } = listed;
  const finding = { kind: 'movement' as const, issuerId, id };
  // It moved nothing, and we don't rely on it.
  if (status === 'failed' && (outcome === 'overtaken' || outcome === 'dismissed')) return 'matched';
  if (id === null) {
    const detail = `the issuer has a transfer, ${WORDS[kind]} of ${amountCents} cents, ${status}, that we did not ask for`;
    return { ...finding, problem: 'missing_here', detail };
  }
  if (outcome === 'pending') return 'under_way';
  if (Number(cents) === amountCents && outcome === status) {
    if (wasOf === null || status === 'failed') return 'matched';
    const detail = `${WORDS[kind]} of ${cents} cents moved money of ${wasOf} at the issuer, where its card has another id`;
    return { ...finding, problem: 'different', detail };
  }
  const here = outcome === 'overtaken' ? 'asked for again with another token' : outcome;
  return {
    ...finding,
    problem: 'different',
    detail: `${WORDS[kind]} of ${cents} cents, ${here}, here; ${amountCents} cents, ${status}, at the issuer`,
  };
}

// The first token of a true-up is its id, and each time an operator has it asked again it gets another one.
const ours = readStatement(
  (_, { kinds, tokens }: { kinds: string[]; tokens: (string | null)[] }) => sql<OurMovement>`
    SELECT coalesce(c.id, t.id, r.id, o.id) AS id,
      CASE WHEN c.status = 'funding_pending' THEN 'pending' WHEN c.status = 'failed' THEN 'failed'
        WHEN c.id IS NOT NULL THEN 'succeeded' WHEN r.status = 'refused' THEN 'failed'
        WHEN r.id IS NULL AND o.id IS NOT NULL THEN 'overtaken'
        ELSE coalesce(t.status, r.status) END AS outcome,
      coalesce(c.funding_cents, t.amount_cents, r.amount_cents, o.amount_cents) AS cents,
      CASE WHEN t.asked ->> 'networkCardId' <> k.network_card_id THEN t.asked ->> 'networkCardId' END AS was_of
    FROM unnest(${kinds}::text[], ${tokens}::text[]) WITH ORDINALITY l (kind, token, n)
    LEFT JOIN card c ON l.kind = 'issuance' AND c.id = l.token AND c.mode = 'live'
    LEFT JOIN card_transfer t ON t.direction = l.kind AND t.id = l.token AND t.mode = 'live'
    LEFT JOIN card k ON k.id = t.card_id AND k.mode = 'live'
    LEFT JOIN true_up r ON l.kind = 'true_up' AND r.token = l.token AND r.mode = 'live'
    LEFT JOIN true_up o ON l.kind = 'true_up' AND o.id = l.token AND o.mode = 'live'
    ORDER BY l.n`,
  { acrossTenants: 'network' },
);
