import { sql } from 'kysely';
import type { Orm } from '../../db/orm.ts';
import { readStatement } from '../../db/sql.ts';
import type { ListedMovement } from '../../domain/card-network.ts';
import type { OurObject, Page, Verdict } from './compare-cards.ts';

/** Compares movements of money as the network lists them with what we asked it for. @returns in their order */
export async function compareMovements(orm: Orm, listed: readonly ListedMovement[]): Promise<Verdict[]> {
  const rows = await ours(orm.em.fork(), {
    kinds: listed.map(({ kind }) => kind),
    tokens: listed.map(({ token }) => token),
  });
  return listed.map((movement, index) => verdict(movement, rows[index] as OurMovement));
}

interface OurMovement {
  id: string | null;
  outcome: 'pending' | 'succeeded' | 'failed' | null;
  cents: string | null;
}

const WORDS = { issuance: 'issuance', topup: 'top-up', withdrawal: 'withdrawal', return: 'return' } as const;

function verdict(listed: ListedMovement, { id, outcome, cents }: OurMovement): Verdict {
  const { kind, amountCents, status, networkMovementId: issuerId } = listed;
  const finding = { kind: 'movement' as const, issuerId, id };
  // What a blocked card gives back has no more than the network's own record.
  if (kind === 'return' && listed.token !== null) return status === 'accepted' ? 'under_way' : 'matched';
  if (id === null) {
    const detail = `the issuer has a transfer, ${WORDS[kind]} of ${amountCents} cents, ${status}, that we did not ask for`;
    return { ...finding, problem: 'missing_here', detail };
  }
  if (outcome === 'pending') return 'under_way';
  if (Number(cents) === amountCents && outcome === status) return 'matched';
  return {
    ...finding,
    problem: 'different',
    detail: `${WORDS[kind]} of ${cents} cents, ${outcome}, here; ${amountCents} cents, ${status}, at the issuer`,
  };
}

const ours = readStatement(
  (_, { kinds, tokens }: { kinds: string[]; tokens: (string | null)[] }) => sql<OurMovement>`
    SELECT coalesce(c.id, t.id, w.id) AS id,
      CASE WHEN c.status = 'funding_pending' THEN 'pending' WHEN c.status = 'failed' THEN 'failed'
        WHEN c.id IS NOT NULL THEN 'succeeded' ELSE coalesce(t.status, w.status) END AS outcome,
      coalesce(c.funding_cents, t.amount_cents, w.amount_cents) AS cents
    FROM unnest(${kinds}::text[], ${tokens}::text[]) WITH ORDINALITY l (kind, token, n)
    LEFT JOIN card c ON l.kind = 'issuance' AND c.id = l.token AND c.mode = 'live'
    LEFT JOIN topup t ON l.kind = 'topup' AND t.id = l.token AND t.mode = 'live'
    LEFT JOIN withdrawal w ON l.kind = 'withdrawal' AND w.id = l.token AND w.mode = 'live'
    ORDER BY l.n`,
  { acrossTenants: 'network' },
);

/** A page of our live cards' first loads, by id. */
export const readOurLoads = readStatement(
  (_, { runId, after, until, limit }: Page) => sql<OurObject>`
    SELECT c.id, NULL AS issuer_id, 'the card was issued with ' || c.funding_cents || ' cents' AS detail,
      c.funding_cents > 0 AND c.status IN ('active', 'frozen', 'blocked') AND NOT EXISTS (
        SELECT FROM reconciliation_seen s WHERE s.run_id = ${runId} AND s.kind = 'movement' AND s.key = c.id
      ) AS is_missing
    FROM card c WHERE c.mode = 'live' AND c.id > ${after} AND c.id < ${until} ORDER BY c.id LIMIT ${limit}`,
  { acrossTenants: 'network' },
);

/** A page of our live top-ups, by id. */
export const readOurTopUps = readStatement(
  (_, { runId, after, until, limit }: Page) => sql<OurObject>`
    SELECT t.id, NULL AS issuer_id, 'top-up of ' || t.amount_cents || ' cents, succeeded, here' AS detail,
      t.status = 'succeeded' AND NOT EXISTS (
        SELECT FROM reconciliation_seen s WHERE s.run_id = ${runId} AND s.kind = 'movement' AND s.key = t.id
      ) AS is_missing
    FROM topup t WHERE t.mode = 'live' AND t.id > ${after} AND t.id < ${until} ORDER BY t.id LIMIT ${limit}`,
  { acrossTenants: 'network' },
);

/** A page of our live withdrawals, by id. */
export const readOurWithdrawals = readStatement(
  (_, { runId, after, until, limit }: Page) => sql<OurObject>`
    SELECT w.id, NULL AS issuer_id, 'withdrawal of ' || w.amount_cents || ' cents, succeeded, here' AS detail,
      w.status = 'succeeded' AND NOT EXISTS (
        SELECT FROM reconciliation_seen s WHERE s.run_id = ${runId} AND s.kind = 'movement' AND s.key = w.id
      ) AS is_missing
    FROM withdrawal w WHERE w.mode = 'live' AND w.id > ${after} AND w.id < ${until} ORDER BY w.id LIMIT ${limit}`,
  { acrossTenants: 'network' },
);
