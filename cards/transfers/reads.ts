import { type RawBuilder, sql } from 'kysely';
import { readPartner } from '../../accounts/reads.ts';
import { type MadeBy, readMakers } from '../../accounts/request-reads.ts';
import {
  idRange,
  type PageRequest,
  type PageValues,
  pageRows,
  pageValues,
  readCardCursor,
} from '../../api/http/list-envelope.ts';
import { ApiError } from '../../domain/api-error.ts';
import { isId } from '../../domain/ids.ts';
import { Mode, type Tenant } from '../../domain/mode.ts';
import { unknownId } from '../../domain/refusal.ts';
import { TRANSFERS, type TransferDirection } from '../../domain/transfer.ts';
import { WrongUsage } from '../../operator/errors.ts';
import { of, TRANSFER_COLUMNS } from '../../platform/db/columns.ts';
import { newestRows } from '../../platform/db/newest.ts';
import type { Orm } from '../../platform/db/orm.ts';
import { readStatement, tenantStatement } from '../../platform/db/sql.ts';
import { transferWorkflowId } from '../../workflows/messages.ts';
import { readCard } from '../reads.ts';
import {
  presentTransfer,
  type TransferResource,
  type TransferResources,
  type TransferRow,
} from './resource.ts';

// What partners see.

interface ReadRow extends TransferRow {
  balance_cents: string | null;
}

/** @throws ApiError `topup_not_found` or `withdrawal_not_found`, for an id of another shape as well. */
export async function readTransfer<Direction extends TransferDirection>(
  orm: Orm,
  tenant: Tenant,
  direction: Direction,
  transferId: string,
): Promise<TransferResources[Direction]> {
  const isOne = isId(TRANSFERS[direction].idPrefix, transferId);
  const [row] = isOne ? await selectOne(orm.em.fork(), tenant, { transferId }) : [];
  if (row === undefined) throw new ApiError(`${direction}_not_found`);
  return present(row, direction);
}

interface TransferPage extends PageRequest {
  cardId: string;
}

/**
 * Up to `limit` + 1 transfers of a card, newest first, by key.
 * @throws ApiError `card_not_found`; `validation_failed` if `startingAfter` is not a transfer of the card.
 */
export async function readTransferPage<Direction extends TransferDirection>(
  orm: Orm,
  tenant: Tenant,
  direction: Direction,
  page: TransferPage,
): Promise<TransferResources[Direction][]> {
  const { cardId } = page;
  const rows = isId('card', cardId)
    ? await SELECT_PAGE[direction](orm.em.fork(), tenant, { ...pageValues(page), cardId })
    : [];
  if (rows.length === 0) throw new ApiError('card_not_found');
  const what = `a ${TRANSFERS[direction].noun} of this card`;
  return pageRows<ReadRow>(rows, what).map((row) => present(row, direction));
}

const selectOne = tenantStatement((db, { partnerId, mode, transferId }: Tenant & { transferId: string }) =>
  db
    .selectFrom('card_transfer as t')
    .leftJoin('ledger.account as a', (join) =>
      join
        .onRef('a.card_id', '=', 't.card_id')
        .onRef('a.partner_id', '=', 't.partner_id')
        .onRef('a.mode', '=', 't.mode'),
    )
    .select(of('t', TRANSFER_COLUMNS))
    .select('a.posted as balance_cents')
    .where('t.partner_id', '=', partnerId)
    .where('t.mode', '=', mode)
    .where('t.id', '=', transferId),
);

// One row for each transfer of the page, with the card; if the page is empty, one row with only the card.
const selectPage = (direction: TransferDirection) =>
  tenantStatement((db, values: Tenant & PageValues & { cardId: string }) => {
    const { partnerId, mode, cardId, limit } = values;
    return db
      .selectFrom('card as c')
      .leftJoinLateral(
        newestRows({
          table: 'card_transfer',
          columns: TRANSFER_COLUMNS,
          id: 'id',
          ...idRange(TRANSFERS[direction].idPrefix, values),
          limit,
          where: { card_id: sql.ref('c.id'), direction: sql.lit(direction) },
        }).as('page'),
        (join) => join.onTrue(),
      )
      .leftJoin('ledger.account as a', (join) =>
        join
          .onRef('a.card_id', '=', 'c.id')
          .onRef('a.partner_id', '=', 'c.partner_id')
          .onRef('a.mode', '=', 'c.mode'),
      )
      .select(readCardCursor('card_transfer', values))
      .selectAll('page')
      .select('a.posted as balance_cents')
      .where('c.partner_id', '=', partnerId)
      .where('c.mode', '=', mode)
      .where('c.id', '=', cardId)
      .orderBy('page.id', 'desc');
  });

const SELECT_PAGE = { topup: selectPage('topup'), withdrawal: selectPage('withdrawal') };

const present = <Direction extends TransferDirection>(row: ReadRow, direction: Direction) =>
  presentTransfer({ ...row, direction }, Number(row.balance_cents ?? 0));

// What operators see, across accounts.

/** A transfer as the partner sees it, with its partner and its workflow. */
export type OperatorTransfer = TransferResource & {
  partner_id: string;
  partner_name: string;
  /** When its deadline passed without an answer from the network. */
  overdue_since: string | null;
  workflow_id: string;
};

/** A transfer in a list, with the request that made it; its fields are null if that is older than 31 days. */
export type ListedTransfer = OperatorTransfer & { [Field in keyof MadeBy]: MadeBy[Field] | null };

/** Of one card, or of one partner. */
export type Whose = { cardId: string } | { partnerId: string };

/**
 * Whose transfers or transactions to list, by the flags --card and --partner.
 * @throws WrongUsage unless exactly one is given; Refusal if there is no such card or partner
 */
export async function requireWhose(
  orm: Orm,
  { card, partner }: { card?: string | null; partner?: string | null },
): Promise<Whose> {
  if (card != null && partner == null) return { cardId: (await readCard(orm, card)).id };
  if (card == null && partner != null) return { partnerId: (await readPartner(orm, partner)).id };
  throw new WrongUsage('give one of --card and --partner');
}

/**
 * Newest first.
 * @param page.before only those older than this one
 * @param page.limit at most 10,001
 */
export async function readTransfers(
  orm: Orm,
  direction: TransferDirection,
  whose: Whose,
  { before, limit }: { before: string | null; limit: number },
): Promise<ListedTransfer[]> {
  const em = orm.em.fork();
  const page = { direction, before: before ?? '~', limit };
  const rows =
    'cardId' in whose
      ? await selectOfCard(limit)(em, { ...page, cardId: whose.cardId })
      : await selectOfPartner(limit)(em, { ...page, partnerId: whose.partnerId });
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

/** @throws Refusal if there is no such transfer. */
export async function requireTransfer(
  orm: Orm,
  direction: TransferDirection,
  transferId: string,
): Promise<OperatorTransfer> {
  const transfer = await findTransfer(orm, direction, transferId);
  if (transfer === null) {
    const where = `its id is in GET /v1/cards/{cardId}/${direction}s of the partner`;
    throw unknownId(TRANSFERS[direction].idPrefix, transferId, where);
  }
  return transfer;
}

export async function findTransfer(
  orm: Orm,
  direction: TransferDirection,
  transferId: string,
): Promise<OperatorTransfer | null> {
  const [row] = await selectTransfer(orm.em.fork(), { direction, transferId });
  return row === undefined ? null : presentForOperators(row);
}

type OperatorRow = TransferRow & {
  partner_name: string;
  balance_cents: string | null;
};

function presentForOperators(row: OperatorRow): OperatorTransfer {
  return {
    ...presentTransfer(row, Number(row.balance_cents ?? 0)),
    partner_id: row.partner_id,
    partner_name: row.partner_name,
    overdue_since: row.overdue_since === null ? null : new Date(row.overdue_since).toISOString(),
    workflow_id: transferWorkflowId(row.direction, row.id),
  };
}

const selectTransfer = readStatement(
  (db, { direction, transferId }: { direction: TransferDirection; transferId: string }) =>
    db
      .selectFrom('card_transfer as t')
      .innerJoin('partner as p', 'p.id', 't.partner_id')
      .leftJoin('ledger.account as a', 'a.card_id', 't.card_id')
      .select(of('t', TRANSFER_COLUMNS))
      .select(['p.name as partner_name', 'a.posted as balance_cents'])
      .where('t.id', '=', transferId)
      .where('t.direction', '=', direction),
  { acrossTenants: 'operator' },
);

interface OperatorPage {
  direction: TransferDirection;
  before: string;
  limit: number;
}

const selectOfCard = (maxRows: number) =>
  readStatement(
    (_, { cardId, direction, before, limit }: OperatorPage & { cardId: string }) => {
      const where = { card_id: cardId, direction };
      const columns = TRANSFER_COLUMNS;
      return withPartner(
        newestRows({ table: 'card_transfer', columns, where, id: 'id', before, limit, maxRows }),
        limit,
      );
    },
    { acrossTenants: 'operator' },
  );

const selectOfPartner = (maxRows: number) =>
  readStatement(
    (_, { partnerId, direction, before, limit }: OperatorPage & { partnerId: string }) => {
      const where = { partner_id: partnerId, mode: sql.ref('wanted.mode'), direction };
      const columns = TRANSFER_COLUMNS;
      const inMode = newestRows({ table: 'card_transfer', columns, where, id: 'id', before, limit, maxRows });
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
