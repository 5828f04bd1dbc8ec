import { sql } from 'kysely';
import { CardStatus, type StatusChangeOperation } from '../domain/card-status.ts';
import type { Fee } from '../domain/fees.ts';
import { Mode } from '../domain/mode.ts';
import { unknownId } from '../domain/refusal.ts';
import { completeControls, type SpendingControls } from '../domain/spending-controls.ts';
import { CARD_COLUMNS, of } from '../platform/db/columns.ts';
import type { Row } from '../platform/db/entities.ts';
import { newestRows } from '../platform/db/newest.ts';
import type { Orm } from '../platform/db/orm.ts';
import { readStatement } from '../platform/db/sql.ts';
import { changeCardStatusWorkflowId, issueCardWorkflowId } from '../workflows/messages.ts';
import { appliedControls, type SpendingRow } from './applied-controls.ts';
import { presentSpendingLimit, type SpendingLimitResource } from './spending-limit-resource.ts';

/** A card with its partner and its money, but without the cardholder's data. */
export interface OperatorCard {
  id: string;
  object: 'card';
  partner_id: string;
  partner_name: string;
  mode: Mode;
  status: CardStatus;
  balance: number;
  /** What authorizations and withdrawals do not hold of it. */
  available_balance: number;
  currency: 'USD';
  /** Cents that the issuance loads onto the card. */
  funding: number;
  fees: Fee[];
  external_ref: string;
  /** The keys alone: what the partner stores under them may be about the cardholder. */
  metadata_keys: string[];
  spending_controls: SpendingControls | null;
  /** The card's, then its account's. */
  spending_limits: SpendingLimitResource[];
  /** When the cardholder's data was erased. */
  cardholder_erased_at: string | null;
  product_code: string;
  network: string;
  network_card_id: string | null;
  last4: string | null;
  exp_month: number | null;
  exp_year: number | null;
  failure_code: string | null;
  /** When the issuance's deadline passed without an answer from the network. */
  overdue_since: string | null;
  /** The freeze, unfreeze or block that the network is being asked for. */
  status_change: { operation: StatusChangeOperation; since: string; workflow_id: string } | null;
  created: string;
  workflow_id: string;
}

/** A card in a list. */
interface ListedCard
  extends Pick<
    OperatorCard,
    | 'id'
    | 'object'
    | 'partner_id'
    | 'partner_name'
    | 'mode'
    | 'status'
    | 'funding'
    | 'external_ref'
    | 'last4'
    | 'failure_code'
    | 'overdue_since'
    | 'created'
  > {}

interface CardFilter {
  status: CardStatus | null;
  partnerId: string | null;
  externalRef: string | null;
  /** Only cards older than this one. */
  before: string | null;
  /** At most 10,001. */
  limit: number;
}

/** Newest first. */
export async function readCards(orm: Orm, filter: CardFilter): Promise<ListedCard[]> {
  const { status, partnerId, externalRef, before, limit } = filter;
  const rows = await listWith(filter)(orm.em.fork(), {
    partnerId,
    externalRef,
    limit,
    before: before ?? '~',
    statuses: status === null ? [...CardStatus.options] : [status],
  });
  return rows.map(({ created_at, overdue_since, funding_cents, ...row }) => ({
    ...row,
    object: 'card',
    funding: Number(funding_cents),
    overdue_since: overdue_since === null ? null : new Date(overdue_since).toISOString(),
    created: new Date(created_at).toISOString(),
  }));
}

interface Wanted {
  partnerId: string | null;
  externalRef: string | null;
  statuses: CardStatus[];
  before: string;
  limit: number;
}

type ListedRow = Row<
  'card',
  | 'id'
  | 'partner_id'
  | 'mode'
  | 'status'
  | 'external_ref'
  | 'funding_cents'
  | 'last4'
  | 'failure_code'
  | 'overdue_since'
  | 'created_at'
> & { partner_name: string };

/**
 * Reads a page of each account, mode and status through the index of partners' own lists, and keeps the newest, so that no
 * filter needs an index that would make issuing a card slower. Without a filter, it reads the newest by id.
 */
const listWith = ({ partnerId, externalRef, status, limit: maxRows }: CardFilter) =>
  readStatement(
    (_, { partnerId: partner, externalRef: ref, statuses, before, limit }: Wanted) => {
      const inAccount = newestRows({
        table: 'card',
        columns: ['id'],
        where: {
          partner_id: sql.ref('account.id'),
          mode: sql.ref('wanted_mode.mode'),
          ...(externalRef !== null && { external_ref: ref }),
          ...((externalRef !== null || status !== null) && { status: sql.ref('wanted_status.status') }),
        },
        id: 'id',
        before,
        limit,
        maxRows,
      });
      const eachStatus =
        externalRef === null && status === null
          ? sql``
          : sql`CROSS JOIN unnest(${statuses}::text[]) wanted_status (status)`;
      const found =
        partnerId === null && externalRef === null && status === null
          ? sql`SELECT id FROM card WHERE id < ${before} ORDER BY id DESC LIMIT ${limit}`
          : sql`SELECT one.id FROM (SELECT id FROM partner ${partnerId === null ? sql`` : sql`WHERE id = ${partner}`}) account
            CROSS JOIN unnest(${[...Mode.options]}::text[]) wanted_mode (mode) ${eachStatus}
            CROSS JOIN LATERAL (${inAccount}) one ORDER BY one.id DESC LIMIT ${limit}`;
      return sql<ListedRow>`SELECT k.id, k.partner_id, p.name AS partner_name, k.mode, k.status, k.external_ref,
        k.funding_cents, k.last4, k.failure_code, k.overdue_since, k.created_at
      FROM (${found}) found CROSS JOIN LATERAL (SELECT * FROM card WHERE id = found.id LIMIT 1) k
        JOIN partner p ON p.id = k.partner_id ORDER BY k.id DESC`;
    },
    { acrossTenants: 'operator' },
  );

/** @throws Refusal if there is no such card. */
export async function readCard(orm: Orm, cardId: string): Promise<OperatorCard> {
  const card = await findCard(orm, cardId);
  if (card === null)
    throw unknownId('card', cardId, 'run "operator card list"; its id is in GET /v1/cards of the partner');
  return card;
}

export async function findCard(orm: Orm, cardId: string): Promise<OperatorCard | null> {
  const [row] = await selectCard(orm.em.fork(), { cardId });
  if (row === undefined) return null;
  return {
    id: row.id,
    object: 'card',
    partner_id: row.partner_id,
    partner_name: row.partner_name,
    mode: row.mode,
    status: row.status,
    balance: Number(row.balance_cents ?? 0),
    available_balance: Number(row.balance_cents ?? 0) - Number(row.held_cents ?? 0),
    currency: 'USD',
    funding: Number(row.funding_cents),
    fees: row.fees,
    external_ref: row.external_ref,
    metadata_keys: Object.keys(row.metadata).sort(),
    spending_controls: completeControls(row.spending_controls),
    spending_limits: appliedControls(row.spending_controls, row).limits.map(presentSpendingLimit),
    cardholder_erased_at:
      row.cardholder_erased_at === null ? null : new Date(row.cardholder_erased_at).toISOString(),
    product_code: row.product_code,
    network: row.network,
    network_card_id: row.network_card_id,
    last4: row.last4,
    exp_month: row.exp_month,
    exp_year: row.exp_year,
    failure_code: row.failure_code,
    overdue_since: row.overdue_since === null ? null : new Date(row.overdue_since).toISOString(),
    status_change:
      row.change_id === null
        ? null
        : {
            operation: row.change_operation as StatusChangeOperation,
            since: new Date(row.change_since as string).toISOString(),
            workflow_id: changeCardStatusWorkflowId(row.id, row.change_id),
          },
    created: new Date(row.created_at).toISOString(),
    workflow_id: issueCardWorkflowId(row.id),
  };
}

const selectCard = readStatement(
  (db, { cardId }: { cardId: string }) =>
    db
      .selectFrom('card as c')
      .innerJoin('partner as p', 'p.id', 'c.partner_id')
      .leftJoin('ledger.account as a', 'a.card_id', 'c.id')
      .leftJoin('idempotency_claim as s', 's.id', 'c.status_change_claim_id')
      .select([...of('c', CARD_COLUMNS), 'c.cardholder_erased_at'])
      .select(['p.name as partner_name', 'a.posted as balance_cents', 'a.held as held_cents'])
      .select([
        'p.spending_controls as account_controls',
        sql<
          SpendingRow[] | null
        >`(SELECT jsonb_agg(r) FROM read_spending(c, p.spending_controls, account_now(c.partner_id, c.mode)) r)`.as(
          'spending',
        ),
      ])
      .select(['s.id as change_id', 's.operation as change_operation', 's.created_at as change_since'])
      .where('c.id', '=', cardId),
  { acrossTenants: 'operator' },
);
