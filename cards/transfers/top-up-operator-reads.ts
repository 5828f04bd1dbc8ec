import { type RawBuilder, sql } from 'kysely';
import { readPartner } from '../../accounts/reads.ts';
import { type MadeBy, readMakers } from '../../accounts/request-reads.ts';
import { Mode } from '../../domain/mode.ts';
import { unknownId } from '../../domain/refusal.ts';
import { WrongUsage } from '../../operator/errors.ts';
import { of, TOPUP_COLUMNS } from '../../platform/db/columns.ts';
import { newestRows } from '../../platform/db/newest.ts';
import type { Orm } from '../../platform/db/orm.ts';
import { readStatement } from '../../platform/db/sql.ts';
import { topUpCardWorkflowId } from '../../workflows/messages.ts';
import { readCard } from '../reads.ts';
import { presentTopUp, type TopUpResource, type TopUpRow } from './top-up-resource.ts';

/** A top-up as the partner sees it, with its partner and its workflow. */
export interface OperatorTopUp extends TopUpResource {
  partner_id: string;
  partner_name: string;
  /** When its deadline passed without an answer from the network. */
  overdue_since: string | null;
  workflow_id: string;
}

/** A top-up in a list, with the request that made it; its fields are null if that is older than 31 days. */
export interface ListedTopUp extends OperatorTopUp, Nullable<MadeBy> {}

type Nullable<T> = { [Field in keyof T]: T[Field] | null };

/** Of one card, or of one partner. */
export type Whose = { cardId: string } | { partnerId: string };

/**
 * Whose top-ups or transactions to list, by the flags --card and --partner.
 * @throws WrongUsage unless exactly one is given; Refusal if there is no such card or partner
 */
export async function requireWhose(
  orm: Orm,
  { card, partner }: { card?: string; partner?: string },
): Promise<Whose> {
  if (card !== undefined && partner === undefined) return { cardId: (await readCard(orm, card)).id };
  if (card === undefined && partner !== undefined) return { partnerId: (await readPartner(orm, partner)).id };
  throw new WrongUsage('give one of --card and --partner');
}

/**
 * Newest first.
 * @param page.before only those older than this one
 * @param page.limit at most 10,001
 */
export async function readTopUps(
  orm: Orm,
  whose: Whose,
  { before, limit }: { before: string | null; limit: number },
): Promise<ListedTopUp[]> {
  const em = orm.em.fork();
  const page = { before: before ?? '~', limit };
  const rows =
    'cardId' in whose
      ? await selectCardTopUps(limit)(em, { ...page, cardId: whose.cardId })
      : await selectPartnerTopUps(limit)(em, { ...page, partnerId: whose.partnerId });
  const makers = await readMakers(
    orm,
    rows.map(({ id }) => id),
  );
  return rows.map((row) => {
    const maker = makers.get(row.id);
    return {
      ...presentForOperators(row),
      request_id: maker?.request_id ?? null,
      idempotency_key: maker?.idempotency_key ?? null,
      api_key_id: maker?.api_key_id ?? null,
      client_address: maker?.client_address ?? null,
    };
  });
}

/** @throws Refusal if there is no such top-up. */
export async function readTopUp(orm: Orm, topUpId: string): Promise<OperatorTopUp> {
  const topUp = await findTopUp(orm, topUpId);
  if (topUp === null) {
    throw unknownId('topup', topUpId, 'its id is in GET /v1/cards/{cardId}/topups of the partner');
  }
  return topUp;
}

export async function findTopUp(orm: Orm, topUpId: string): Promise<OperatorTopUp | null> {
  const [row] = await selectTopUp(orm.em.fork(), { topUpId });
  return row === undefined ? null : presentForOperators(row);
}

type OperatorRow = TopUpRow & {
  partner_id: string;
  partner_name: string;
  overdue_since: string | null;
  balance_cents: string | null;
};

function presentForOperators(row: OperatorRow): OperatorTopUp {
  return {
    ...presentTopUp(row, Number(row.balance_cents ?? 0)),
    partner_id: row.partner_id,
    partner_name: row.partner_name,
    overdue_since: row.overdue_since === null ? null : new Date(row.overdue_since).toISOString(),
    workflow_id: topUpCardWorkflowId(row.id),
  };
}

const selectTopUp = readStatement(
  (db, { topUpId }: { topUpId: string }) =>
    db
      .selectFrom('topup as t')
      .innerJoin('partner as p', 'p.id', 't.partner_id')
      .leftJoin('ledger.account as a', 'a.card_id', 't.card_id')
      .select(of('t', TOPUP_COLUMNS))
      .select(['p.name as partner_name', 'a.posted as balance_cents'])
      .where('t.id', '=', topUpId),
  { acrossTenants: 'operator' },
);

interface Page {
  before: string;
  limit: number;
}

const selectCardTopUps = (maxRows: number) =>
  readStatement(
    (_, { cardId, before, limit }: Page & { cardId: string }) => {
      const where = { card_id: cardId };
      const columns = TOPUP_COLUMNS;
      return withPartner(
        newestRows({ table: 'topup', columns, where, id: 'id', before, limit, maxRows }),
        limit,
      );
    },
    { acrossTenants: 'operator' },
  );

const selectPartnerTopUps = (maxRows: number) =>
  readStatement(
    (_, { partnerId, before, limit }: Page & { partnerId: string }) => {
      const where = { partner_id: partnerId, mode: sql.ref('wanted.mode') };
      const columns = TOPUP_COLUMNS;
      const inMode = newestRows({ table: 'topup', columns, where, id: 'id', before, limit, maxRows });
      const found = sql`(SELECT one.* FROM unnest(${[...Mode.options]}::text[]) wanted (mode)
      CROSS JOIN LATERAL ${inMode} one ORDER BY one.id DESC LIMIT ${limit})`;
      return withPartner(found, limit);
    },
    { acrossTenants: 'operator' },
  );

const withPartner = (found: RawBuilder<unknown>, limit: number) => sql<OperatorRow>`
  SELECT t.*, p.name AS partner_name, a.posted AS balance_cents FROM ${found} t
    CROSS JOIN LATERAL (SELECT name FROM partner WHERE id = t.partner_id LIMIT 1) p
    LEFT JOIN LATERAL (SELECT posted FROM ledger.account WHERE card_id = t.card_id LIMIT 1) a ON true
  ORDER BY t.id DESC LIMIT ${limit}`;
