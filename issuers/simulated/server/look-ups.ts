import type { KeyObject } from 'node:crypto';
import { sql } from 'kysely';
import type { z } from 'zod';
import type { NetworkCard } from '../../../domain/card.ts';
import type { TransferDirection } from '../../../domain/transfer.ts';
import { type Reader, readStatement } from '../../../platform/db/sql.ts';
import type { LookUpAnswer, RevealedCard, TransferLookUpAnswer } from '../../card-network.ts';
import { deriveCard, deriveRevealedCard } from '../../derived-cards.ts';
import type { OperationKind } from '../tables.ts';
import type { ListedCards, ListedMovements } from '../wire.ts';

/** The state of an issuance, with its card if there is one. */
export async function lookUpIssuance(em: Reader, token: string): Promise<LookUpAnswer> {
  const { state, card } = await readOperation(em, 'card.issuance', token);
  if (state === 'accepted') return card === null ? { status: state } : { status: state, card };
  if (state !== 'succeeded') return unsuccessful(state);
  if (card === null) throw new Error('the simulated network lost a card that it issued');
  return { status: 'issued', ...card };
}

/** The state of a transfer. */
export async function lookUpTransfer(
  em: Reader,
  direction: TransferDirection,
  token: string,
): Promise<TransferLookUpAnswer> {
  const { state } = await readOperation(em, `card.${direction}`, token);
  return state === 'accepted' || state === 'succeeded' ? { status: state } : unsuccessful(state);
}

const REASONS = { declined: 'declined_by_network', failed: 'failed_at_network' } as const;

const unsuccessful = (state: 'unknown' | 'declined' | 'failed') =>
  state === 'unknown' ? { status: state } : { status: state, reason: REASONS[state] };

/**
 * The state of an operation by the database's clock, which is the same for every process and after every
 * crash.
 */
export async function readOperation(em: Reader, kind: OperationKind, token: string): Promise<OperationState> {
  const [row] = await operationWith(em, { kind, token });
  if (row === undefined) return { state: 'unknown', card: null };
  const { state, network_card_id: networkCardId } = row;
  if (networkCardId === null) return { state, card: null };
  return { state, card: { networkCardId, last4: row.last4, expMonth: row.exp_month, expYear: row.exp_year } };
}

interface OperationState {
  state: 'unknown' | 'accepted' | 'succeeded' | 'declined' | 'failed';
  /** The card that an issuance created. */
  card: NetworkCard | null;
}

const operationWith = readStatement((db, { kind, token }: { kind: OperationKind; token: string }) =>
  db
    .selectFrom('simulated_network.operation as o')
    .leftJoin('simulated_network.card as c', 'c.token', 'o.token')
    .select([
      sql<Exclude<OperationState['state'], 'unknown'>>`
        CASE WHEN o.completes_at <= clock_timestamp() THEN o.outcome ELSE 'accepted' END`.as('state'),
      'c.network_card_id',
      'c.last4',
      'c.exp_month',
      'c.exp_year',
    ])
    .where('o.token', '=', token)
    .where('o.kind', '=', kind)
    .where('o.taken_at', 'is not', null)
    // The left join finds either a whole card or nothing.
    .$narrowType<{ last4: string; exp_month: number; exp_year: number }>(),
);

/** How many entries one page of a list has. */
export const MAX_LISTED = 100;

/** Where a page of a list begins. */
interface ListPage {
  since: Date;
  /** The token of the last entry of the page before; empty for the first page. */
  after: string;
}

/** The cards that were issued since then, oldest first. */
export const listIssuedCards = readStatement(
  (_, { since, after }: ListPage) => sql<z.infer<typeof ListedCards>['data'][number]>`
    SELECT o.token, c.network_card_id AS "networkCardId", c.status
    FROM simulated_network.operation o JOIN simulated_network.card c ON c.token = o.token
    WHERE o.created_at >= ${since} AND o.outcome = 'succeeded' AND o.completes_at <= clock_timestamp()
      AND (${after} = '' OR (o.created_at, o.token) > (SELECT l.created_at, l.token
        FROM simulated_network.operation l WHERE l.token = ${after}))
    ORDER BY o.created_at, o.token LIMIT ${sql.lit(MAX_LISTED)}`,
);

/** The card with an id, if it was issued. */
export const issuedCardWith = readStatement((db, { networkCardId }: { networkCardId: string }) =>
  db
    .selectFrom('simulated_network.card')
    .select(['token', 'network_card_id as networkCardId', 'status'])
    .where('network_card_id', '=', networkCardId),
);

/** The money that was moved to and from cards since then, oldest first. */
export const listMovedMoney = readStatement(
  (_, { since, after }: ListPage) => sql<z.infer<typeof ListedMovements>['data'][number]>`
    SELECT o.token, split_part(o.kind, '.', 2) AS kind,
      (o.request ->> 'amountCents')::bigint::float8 AS "amountCents",
      CASE WHEN o.completes_at IS NULL OR o.completes_at > clock_timestamp() THEN 'accepted'
        WHEN o.outcome = 'succeeded' THEN 'succeeded' ELSE 'failed' END AS status
    FROM simulated_network.operation o
    WHERE o.created_at >= ${since} AND o.taken_at IS NOT NULL AND o.outcome <> 'declined'
      AND o.kind IN ('card.issuance', 'card.topup', 'card.withdrawal')
      AND (${after} = '' OR (o.created_at, o.token) > (SELECT l.created_at, l.token
        FROM simulated_network.operation l WHERE l.token = ${after}))
    ORDER BY o.created_at, o.token LIMIT ${sql.lit(MAX_LISTED)}`,
);

/**
 * Derives the secret details of a card.
 * @param cardKeys must include the key that the card was issued under: only that one derives the card's
 * network id
 * @returns undefined if the network has no such card
 * @throws Error if the card's key is missing
 */
export async function revealDetails(
  em: Reader,
  cardKeys: readonly KeyObject[],
  networkCardId: string,
): Promise<RevealedCard | undefined> {
  const [card] = await findOrigin(em, { networkCardId });
  if (card === undefined) return undefined;
  const { token, bin } = card;
  const key = cardKeys.find((candidate) => deriveCard(candidate, token, bin).networkCardId === networkCardId);
  if (key === undefined) throw new Error('the key this card was issued under is not in ENCRYPTION_KEYS');
  return deriveRevealedCard(key, token, bin);
}

const findOrigin = readStatement((db, { networkCardId }: { networkCardId: string }) =>
  db
    .selectFrom('simulated_network.card as c')
    .innerJoin('simulated_network.operation as o', 'o.token', 'c.token')
    .select(['c.token', sql<string>`o.request ->> 'bin'`.as('bin')])
    .where('c.network_card_id', '=', networkCardId),
);
