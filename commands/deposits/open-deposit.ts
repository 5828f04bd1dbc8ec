import type { EntityManager } from '@mikro-orm/postgresql';
import type { KeyRing } from '../../crypto/key-ring.ts';
import { timeOf } from '../../crypto/new-id.ts';
import { query } from '../../db/sql.ts';
import { tenantQuery } from '../../db/tenant-query.ts';
import { ApiError } from '../../domain/api-error.ts';
import type { TronNetwork } from '../../domain/deposit.ts';
import { siblingId } from '../../domain/ids.ts';
import { type DepositRow, presentDeposit } from '../../resources/deposit.ts';
import type { CommandContext } from '../command-context.ts';
import {
  answerOnce,
  claimAnswered,
  type KeyedAnswer,
  replayOf,
  requireStored,
} from '../idempotency/answer-once.ts';
import type { FoundClaim, KeyedRequest } from '../idempotency/claim.ts';

/** Of one account at once. Each is an address that is watched, and a workflow. */
const MOST_OPEN_DEPOSITS = 10_000;

/** What addresses are given out by. */
export interface DepositTerms {
  network: TronNetwork;
  /** Whose tokens count. */
  usdtContract: string;
  /** How long a deposit waits for its payment. */
  addressTtlMs: number;
  /** The address with this number: in base58, and its 20 bytes as the chain has them. */
  deriveAddress(index: number): { address: string; addressHash: Buffer };
}

/**
 * Gives out an address of its own for a deposit (partner-api.md, "Deposit instruction"). Neither Temporal nor a node is
 * asked: the worker finds the row.
 * @throws ApiError `limit_exceeded`, `idempotency_in_flight`, `idempotency_conflict`
 */
export function openDeposit(
  context: CommandContext,
  terms: DepositTerms,
  request: KeyedRequest,
  amountCents: number,
): Promise<KeyedAnswer> {
  const { ring } = context;
  return answerOnce(context, request, async (tx) => {
    const begun = await takeIndex(tx, ring, request);
    if ('replayed' in begun) return begun;
    const { address, addressHash } = terms.deriveAddress(begun.index);
    const id = siblingId('dep', request.claimId);
    const createdAt = timeOf(id);
    const row: DepositRow = {
      ...{ id, partner_id: request.partnerId, mode: request.mode, network: terms.network },
      ...{ contract_address: terms.usdtContract, address, amount_cents: String(amountCents) },
      ...{ status: 'awaiting_payment', received_micro_usdt: '0', credited_cents: '0', payments: null },
      created_at: createdAt.toISOString(),
      expires_at: new Date(createdAt.getTime() + terms.addressTtlMs).toISOString(),
      confirmed_at: null,
    };
    const response = { status: 201, body: JSON.stringify(presentDeposit(row)) };
    await insert(tx, ring, request, row, { index: begun.index, addressHash }, response);
    return { replayed: false, response };
  });
}

/**
 * Looks under the key and takes the next number of an address. Numbers come from a sequence, so that one that was given
 * out is gone, whatever becomes of this transaction.
 */
async function takeIndex(
  tx: EntityManager,
  ring: KeyRing,
  request: KeyedRequest,
): Promise<{ index: number } | KeyedAnswer> {
  const [row] = await tenantQuery<FoundClaim & { is_first: boolean; address_index: number | null }>(
    tx,
    request,
    TAKE_INDEX,
    [request.key],
  );
  if (row === undefined) throw new Error('a statement without a table gave no row');
  // decisions.md, "Idempotency": a second request is told that the first one runs, and does not wait for it.
  if (!row.is_first) throw new ApiError('idempotency_in_flight');
  const replay = replayOf(ring, request, row);
  if (replay !== null) return replay;
  if (row.address_index === null) {
    throw new ApiError('limit_exceeded', {
      message: `Limit exceeded: this account already has ${MOST_OPEN_DEPOSITS} deposits awaiting payment. Pay some of them, or wait until some expire.`,
    });
  }
  return { index: row.address_index };
}

// The lock is gone with the transaction. The count is an estimate while others are under way, which is enough for a limit
// that keeps one account from making rows without end.
const TAKE_INDEX = `
  SELECT first.is_first, c.id AS claim_id, c.fingerprint, c.response_status, c.response_body,
    CASE WHEN first.is_first AND c.id IS NULL AND (
      SELECT count(*) FROM (
        SELECT FROM deposit d WHERE d.partner_id = $1 AND d.mode = $2 AND d.status IN ('awaiting_payment', 'confirming')
        LIMIT ${MOST_OPEN_DEPOSITS}) open
    ) < ${MOST_OPEN_DEPOSITS} THEN nextval('deposit_address_index')::int END AS address_index
  FROM (SELECT $3::text IS NULL OR pg_try_advisory_xact_lock(hashtextextended(concat_ws('/', $1::text, $2::text, $3), 0))
      AS is_first) first
    LEFT JOIN idempotency_claim c ON c.partner_id = $1 AND c.mode = $2 AND c.key = $3`;

async function insert(
  tx: EntityManager,
  ring: KeyRing,
  request: KeyedRequest,
  row: DepositRow,
  { index, addressHash }: { index: number; addressHash: Buffer },
  response: KeyedAnswer['response'],
): Promise<void> {
  const values = [
    ...[row.id, row.partner_id, row.mode, row.network, row.contract_address, index, row.address, addressHash],
    ...[row.amount_cents, row.created_at, row.expires_at],
  ];
  const claim =
    request.key === null ? null : claimAnswered(ring, request, response, values.length + 1, 'done');
  const [wrote] = await query<{ kept: boolean }>(
    tx,
    `WITH done AS (
       INSERT INTO deposit (id, partner_id, mode, network, contract_address, address_index, address, address_hash,
         amount_cents, created_at, expires_at)
       VALUES (${values.map((_, i) => `$${i + 1}`).join(', ')}) RETURNING id
     )${claim === null ? '' : `, answered AS (${claim.sql})`}
     SELECT ${claim === null ? 'true' : 'EXISTS (SELECT FROM answered)'} AS kept FROM done`,
    [...values, ...(claim?.values ?? [])],
  );
  requireStored(wrote?.kept === true);
}
