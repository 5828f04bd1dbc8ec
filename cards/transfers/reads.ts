import { type RawBuilder, sql } from 'kysely';
import { type MadeBy, readMakers } from '../../accounts/request-reads.ts';
import { Mode } from '../../domain/mode.ts';
import { unknownId } from '../../domain/refusal.ts';
import { TRANSFERS, type TransferDirection } from '../../domain/transfer.ts';
import { of, TRANSFER_COLUMNS } from '../../platform/db/columns.ts';
import { newestRows } from '../../platform/db/newest.ts';
import type { Orm } from '../../platform/db/orm.ts';
import { readStatement } from '../../platform/db/sql.ts';
import { transferWorkflowId } from '../../workflows/messages.ts';
import { presentTransfer, type TransferResource, type TransferRow } from './resource.ts';

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
export async function readTransfer(
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

interface Page {
  direction: TransferDirection;
  before: string;
  limit: number;
}

const selectOfCard = (maxRows: number) =>
  readStatement(
    (_, { cardId, direction, before, limit }: Page & { cardId: string }) => {
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
    (_, { partnerId, direction, before, limit }: Page & { partnerId: string }) => {
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
