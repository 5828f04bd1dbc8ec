import { sql } from 'kysely';
import { CardStatus } from '../domain/card-status.ts';
import { isoTime } from '../domain/iso-time.ts';
import { Mode } from '../domain/mode.ts';
import { unknownId } from '../domain/refusal.ts';
import { completeControls } from '../domain/spending-controls.ts';
import type { Row } from '../platform/db/entities.ts';
import { newestRows } from '../platform/db/newest.ts';
import type { Orm } from '../platform/db/orm.ts';
import { readStatement } from '../platform/db/sql.ts';
import { changeCardStatusWorkflowId, issueCardWorkflowId } from '../workflows/messages.ts';
import { appliedControls, type ControlsColumns } from './applied-controls.ts';
import { presentSpendingLimit } from './resource.ts';

interface CardFilter {
  status: CardStatus | null;
  partner: string | null;
  externalRef: string | null;
  /** Only cards older than this one. */
  before: string | null;
  /** At most 10,001. */
  limit: number;
}

/** Cards of all accounts, newest first. */
export async function readCards(orm: Orm, filter: CardFilter) {
  const statuses = filter.status === null ? [...CardStatus.options] : [filter.status];
  const rows = await listWith(filter)(orm.em.fork(), { ...filter, before: filter.before ?? '~', statuses });
  return rows.map((row) => ({
    ...row,
    funding: Number(row.funding),
    overdue_since: isoTime(row.overdue_since),
    created: isoTime(row.created),
  }));
}

type ListedRow = Row<'card', 'id' | 'overdue_since'> & { funding: string; created: string };

/**
 * Reads a page of each account, mode and status through the index of partners' own lists, and keeps the
 * newest, so that no filter needs an index that would make issuing a card slower. Without a filter, it reads
 * the newest by id.
 */
const listWith = (filter: CardFilter) =>
  readStatement(
    (_, { partner, externalRef, statuses, before, limit }: CardFilter & { statuses: CardStatus[] }) => {
      const ofRef = filter.externalRef !== null;
      const ofStatus = ofRef || filter.status !== null;
      const inAccount = newestRows({
        table: 'card',
        columns: ['id'],
        where: {
          partner_id: sql.ref('account.id'),
          mode: sql.ref('wanted_mode.mode'),
          ...(ofRef && { external_ref: externalRef }),
          ...(ofStatus && { status: sql.ref('wanted_status.status') }),
        },
        id: 'id',
        before,
        limit,
        maxRows: filter.limit,
      });
      const account = filter.partner === null ? sql`` : sql`WHERE id = ${partner}`;
      const eachStatus = ofStatus
        ? sql`CROSS JOIN unnest(${statuses}::text[]) wanted_status (status)`
        : sql``;
      const found =
        filter.partner === null && !ofStatus
          ? sql`SELECT id FROM card WHERE id < ${before} ORDER BY id DESC LIMIT ${limit}`
          : sql`SELECT one.id FROM (SELECT id FROM partner ${account}) account
            CROSS JOIN unnest(${[...Mode.options]}::text[]) wanted_mode (mode) ${eachStatus}
            CROSS JOIN LATERAL (${inAccount}) one ORDER BY one.id DESC LIMIT ${limit}`;
      return sql<ListedRow>`SELECT k.id, 'card' AS object, k.partner_id,
        p.name AS partner_name, k.mode, k.status,
        k.external_ref, k.funding_cents AS funding, k.last4, k.failure_code, k.overdue_since,
        k.created_at AS created
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

export type OperatorCard = NonNullable<Awaited<ReturnType<typeof findCard>>>;

/** A card with its partner and its money, but without the cardholder's data; null if there is none. */
export async function findCard(orm: Orm, cardId: string) {
  const [row] = await selectCard(orm.em.fork(), { cardId });
  if (row === undefined) return null;
  const { account_controls, spending, change_id, change_operation, change_since, ...card } = row;
  const { limits } = appliedControls(card.spending_controls, { account_controls, spending });
  return {
    ...card,
    balance: Number(card.balance),
    available_balance: Number(card.available_balance),
    funding: Number(card.funding),
    spending_controls: completeControls(card.spending_controls),
    /** The card's, then its account's. */
    spending_limits: limits.map(presentSpendingLimit),
    cardholder_erased_at: isoTime(card.cardholder_erased_at),
    /** When the issuance's deadline passed without an answer from the network. */
    overdue_since: isoTime(card.overdue_since),
    created: isoTime(card.created),
    /** The freeze, unfreeze or block that the network is being asked for. */
    status_change:
      change_id === null
        ? null
        : {
            operation: change_operation,
            since: isoTime(change_since),
            workflow_id: changeCardStatusWorkflowId(card.id, change_id),
          },
    workflow_id: issueCardWorkflowId(card.id),
  };
}

interface CardRow
  extends ControlsColumns,
    Row<'card', 'id' | 'partner_id' | 'mode' | 'status' | 'spending_controls' | 'network_card_id'>,
    Row<'card', 'failure_code' | 'overdue_since' | 'cardholder_erased_at'> {
  partner_name: string;
  balance: string;
  available_balance: string;
  funding: string;
  created: string;
  change_id: string | null;
  change_operation: string | null;
  change_since: string | null;
}

// Of the metadata, the keys alone: what the partner stores under them may be about the cardholder.
const selectCard = readStatement(
  (_, { cardId }: { cardId: string }) => sql<CardRow>`
    SELECT c.id, 'card' AS object, c.partner_id, p.name AS partner_name, c.mode, c.status,
      coalesce(a.posted, 0) AS balance,
      coalesce(a.posted, 0) - coalesce(a.held, 0) AS available_balance, 'USD' AS currency,
      c.funding_cents AS funding, c.fees, c.external_ref,
      ARRAY(SELECT key FROM jsonb_object_keys(c.metadata) key ORDER BY key COLLATE "C") AS metadata_keys,
      c.spending_controls, c.cardholder_erased_at, c.product_code, c.network, c.network_card_id,
      c.last4, c.exp_month, c.exp_year, c.failure_code, c.overdue_since, c.created_at AS created,
      p.spending_controls AS account_controls,
      (SELECT jsonb_agg(r) FROM read_spending(c, p.spending_controls, account_now(c.partner_id, c.mode)) r) AS spending,
      s.id AS change_id, s.operation AS change_operation, s.created_at AS change_since
    FROM card c JOIN partner p ON p.id = c.partner_id LEFT JOIN ledger.account a ON a.card_id = c.id
      LEFT JOIN idempotency_claim s ON s.id = c.status_change_claim_id
    WHERE c.id = ${cardId}`,
  { acrossTenants: 'operator' },
);
