import { cardColumns } from '../db/card-columns.ts';
import type { Orm } from '../db/orm.ts';
import type { Tenant } from '../db/tenant.ts';
import { tenantQuery } from '../db/tenant-query.ts';
import { ApiError } from '../domain/api-error.ts';
import { type CardResource, type CardRow, presentCard } from '../domain/card-resource.ts';
import { isId } from '../domain/ids.ts';

interface ReadRow extends CardRow {
  balance_cents: string | null;
}

/** The card's id in a path. @throws ApiError `card_not_found` for what does not look like one: it can't exist. */
export function cardIdOf({ params: { cardId = '' } }: { params: Record<string, string> }): string {
  if (!isId('card', cardId)) throw new ApiError('card_not_found');
  return cardId;
}

/** @throws ApiError `card_not_found`, for an id of another shape as well. */
export async function readCard(orm: Orm, tenant: Tenant, cardId: string): Promise<CardResource> {
  const [row] = isId('card', cardId) ? await tenantQuery<ReadRow>(orm.em.fork(), tenant, ONE, [cardId]) : [];
  if (row === undefined) throw new ApiError('card_not_found');
  return present(row);
}

export interface CardPage {
  limit: number;
  startingAfter?: string | undefined;
  externalRef?: string | undefined;
  status?: string | undefined;
}

/**
 * Up to `limit` + 1 cards, newest first, by key.
 * @throws ApiError `validation_failed` where `startingAfter` is no card of the tenant.
 */
export async function readCardPage(orm: Orm, tenant: Tenant, page: CardPage): Promise<CardResource[]> {
  const values: unknown[] = [page.limit + 1];
  const bind = (value: unknown) => `$${values.push(value) + 2}`;
  const after = page.startingAfter === undefined ? undefined : bind(page.startingAfter);
  const filters = [
    ...(after === undefined ? [] : [`AND c.id < ${after}`]),
    ...(page.status === undefined ? [] : [`AND c.status = ${bind(page.status)}`]),
    ...(page.externalRef === undefined ? [] : [`AND c.external_ref = ${bind(page.externalRef)}`]),
  ].join(' ');
  const rows = await tenantQuery<ReadRow & { known: boolean }>(
    orm.em.fork(),
    tenant,
    `SELECT k.known, page.*, a.posted AS balance_cents
     FROM (SELECT ${after === undefined ? 'true' : KNOWN(after)} AS known) k
     LEFT JOIN (
       SELECT ${cardColumns('c')} FROM card c WHERE c.partner_id = $1 AND c.mode = $2 ${filters} ORDER BY c.id DESC LIMIT $3
     ) page ON true
     LEFT JOIN ledger.account a ON a.card_id = page.id
     ORDER BY page.id DESC`,
    values,
  );
  if (rows[0]?.known === false)
    throw ApiError.ofField('starting_after', 'starting_after is not the id of a card');
  return rows.filter((row) => row.id !== null).map(present);
}

const ONE = `
  SELECT ${cardColumns('c')}, a.posted AS balance_cents FROM card c LEFT JOIN ledger.account a ON a.card_id = c.id
  WHERE c.partner_id = $1 AND c.mode = $2 AND c.id = $3`;

const KNOWN = (after: string) =>
  `EXISTS (SELECT FROM card WHERE partner_id = $1 AND mode = $2 AND id = ${after})`;

function present(row: ReadRow): CardResource {
  return presentCard(row, Number(row.balance_cents ?? 0));
}
