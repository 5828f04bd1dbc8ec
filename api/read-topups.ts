import { of, TOPUP_COLUMNS, topUpColumns } from '../db/columns.ts';
import { newestOf } from '../db/newest.ts';
import type { Orm } from '../db/orm.ts';
import { tenantStatement } from '../db/sql.ts';
import { tenantQuery } from '../db/tenant-query.ts';
import { ApiError } from '../domain/api-error.ts';
import { isId } from '../domain/ids.ts';
import type { Tenant } from '../domain/tenant.ts';
import { presentTopUp, type TopUpResource, type TopUpRow } from '../resources/topup.ts';

interface ReadRow extends TopUpRow {
  balance_cents: string | null;
}

/** @throws ApiError `topup_not_found`, for an id of another shape as well. */
export async function readTopUp(orm: Orm, tenant: Tenant, topUpId: string): Promise<TopUpResource> {
  const [row] = isId('topup', topUpId) ? await one(orm.em.fork(), tenant, { topUpId }) : [];
  if (row === undefined) throw new ApiError('topup_not_found');
  return present(row);
}

export interface TopUpPage {
  cardId: string;
  limit: number;
  startingAfter?: string | undefined;
}

/**
 * Up to `limit` + 1 top-ups of a card, newest first, by key.
 * @throws ApiError `card_not_found`; `validation_failed` where `startingAfter` is no top-up of the card.
 */
export async function readTopUpPage(orm: Orm, tenant: Tenant, page: TopUpPage): Promise<TopUpResource[]> {
  const { cardId, limit, startingAfter } = page;
  const [first, ...rest] = isId('card', cardId)
    ? await tenantQuery<ReadRow & { known: boolean }>(
        orm.em.fork(),
        tenant,
        startingAfter === undefined ? NEWEST : AFTER,
        [cardId, limit + 1, ...(startingAfter === undefined ? [] : [startingAfter])],
      )
    : [];
  if (first === undefined) throw new ApiError('card_not_found');
  if (!first.known) {
    throw ApiError.ofField('starting_after', 'starting_after is not the id of a top-up of this card');
  }
  return [first, ...rest].filter((row) => row.id !== null).map(present);
}

const one = tenantStatement((db, { partnerId, mode, topUpId }: Tenant & { topUpId: string }) =>
  db
    .selectFrom('topup as t')
    .leftJoin('ledger.account as a', 'a.card_id', 't.card_id')
    .select(of('t', TOPUP_COLUMNS))
    .select('a.posted as balance_cents')
    .where('t.partner_id', '=', partnerId)
    .where('t.mode', '=', mode)
    .where('t.id', '=', topUpId),
);

/** The card, with each top-up of the page; with none a row that has the card alone. */
const page = (known: string, before?: string): string => `
  SELECT ${known} AS known, page.*, a.posted AS balance_cents
  FROM card c
  LEFT JOIN LATERAL (${newestOf({
    table: 'topup',
    columns: topUpColumns('topup'),
    where: { card_id: 'c.id' },
    id: 'id',
    before,
    limit: '$4',
  })}) page ON true
  LEFT JOIN ledger.account a ON a.card_id = c.id
  WHERE c.partner_id = $1 AND c.mode = $2 AND c.id = $3
  ORDER BY page.id DESC`;

const NEWEST = page('true');
const AFTER = page('EXISTS (SELECT FROM topup k WHERE k.card_id = c.id AND k.id = $5)', '$5');

function present(row: ReadRow): TopUpResource {
  return presentTopUp(row, Number(row.balance_cents ?? 0));
}
