import { sql } from 'kysely';
import { ApiError } from '../domain/api-error.ts';
import type { ChainName } from '../domain/deposit.ts';
import type { Tenant } from '../domain/mode.ts';
import type { KeyRing } from '../platform/crypto/key-ring.ts';
import { readIdTime } from '../platform/crypto/new-id.ts';
import type { Row } from '../platform/db/entities.ts';
import { cte, type Transactor, tenantStatement, withCtes, writeStatement } from '../platform/db/sql.ts';
import type { FoundClaim, KeyedRequest } from '../requests/claim.ts';
import type { CommandContext } from '../requests/command-context.ts';
import {
  type ClaimWithResponse,
  claimWithResponse,
  type KeyedResponse,
  readReplay,
  requireStored,
  respondOnce,
  storeKeyed,
} from '../requests/respond-once.ts';
import { type DepositRow, presentDeposit } from './resource.ts';

/** The limit of an account's open deposits. Each is an address to watch, and a workflow. */
export const MAX_OPEN_DEPOSITS = 10_000;

/** The terms of new deposits. */
export interface DepositTerms {
  network: ChainName;
  /** The contract whose tokens are credited. */
  usdtContract: string;
  /** How long a deposit waits for its payment. */
  addressTtlMs: number;
  /** The address with this number: in base58, and the 20 bytes that represent it on the chain. */
  deriveAddress(index: number): { address: string; addressHash: Buffer };
}

/**
 * Gives out a new address for a deposit (docs/partners/funding.md). It needs neither Temporal nor a node: the
 * worker finds the row. A second request under the key waits for the first, and gets its response.
 * @throws ApiError `limit_exceeded`, `idempotency_conflict`
 */
export function openDeposit(
  context: CommandContext,
  terms: DepositTerms,
  request: KeyedRequest<'create_deposit'>,
  amountCents: number,
): Promise<KeyedResponse> {
  const { ring } = context;
  return respondOnce(context, request, async (tx) => {
    const begun = await takeIndex(tx, ring, request);
    if ('replayed' in begun) return begun;
    const { address, addressHash } = terms.deriveAddress(begun.index);
    const { resourceId: id } = request;
    const createdAt = readIdTime(id);
    const row = {
      id,
      partner_id: request.partnerId,
      mode: request.mode,
      network: terms.network,
      contract_address: terms.usdtContract,
      address,
      amount_cents: String(amountCents),
      status: 'awaiting_payment' as const,
      received_micro_usdt: '0',
      credited_cents: '0',
      payments: null,
      created_at: createdAt.toISOString(),
      expires_at: new Date(createdAt.getTime() + terms.addressTtlMs).toISOString(),
      confirmed_at: null,
    };
    const response = { status: 201, body: JSON.stringify(presentDeposit(row)) };
    const claim = claimWithResponse(ring, request, response);
    const [wrote] = await insert(tx, { ...row, index: begun.index, addressHash, ...claim });
    requireStored(wrote?.is_stored === true);
    return { replayed: false, response };
  });
}

/**
 * Looks the key up and takes the next address number. Numbers come from a sequence, so none is given out
 * twice, even if this transaction is rolled back.
 */
async function takeIndex(
  tx: Transactor,
  ring: KeyRing,
  request: KeyedRequest,
): Promise<{ index: number } | KeyedResponse> {
  const [row] = await indexUnder(tx, request, { key: request.key });
  if (row === undefined) throw new Error('a statement without a table gave no row');
  const replay = readReplay(ring, request, row);
  if (replay !== null) return replay;
  if (row.address_index === null) {
    throw tooManyOpen();
  }
  return { index: row.address_index };
}

export function tooManyOpen(): ApiError {
  return new ApiError('limit_exceeded', {
    message: `Limit exceeded: this account already has ${MAX_OPEN_DEPOSITS} deposits awaiting payment. Pay some of them, or wait until some expire. If you sent an Idempotency-Key, use a new one then: it keeps this response.`,
  });
}

// Written out for the sequence. The count ignores concurrent requests, which is good enough for a limit that
// only keeps an account from creating rows indefinitely.
const indexUnder = tenantStatement(
  (_, { partnerId, mode, key }: Tenant & { key: string | null }) => sql<
    FoundClaim & { address_index: number | null }
  >`
    SELECT c.id AS claim_id, c.fingerprint, c.response_status, c.response_body,
      CASE WHEN c.id IS NULL AND (
        SELECT count(*) FROM (
          SELECT FROM deposit d
          WHERE d.partner_id = ${partnerId} AND d.mode = ${mode}
            AND d.status IN ('awaiting_payment', 'confirming')
          LIMIT ${sql.lit(MAX_OPEN_DEPOSITS)}) open
      ) < ${sql.lit(MAX_OPEN_DEPOSITS)} THEN nextval('deposit_address_index')::int END AS address_index
    FROM (SELECT) one LEFT JOIN idempotency_claim c ON c.partner_id = ${partnerId}
      AND c.mode = ${mode} AND c.key = ${key}`,
);

interface NewDeposit extends Omit<DepositRow, 'payments'> {
  index: number;
  addressHash: Buffer;
}

const insertRow = (deposit: NewDeposit) => sql<Row<'deposit', 'id'>>`
  INSERT INTO deposit (id, partner_id, mode, network, contract_address, address_index, address, address_hash,
    amount_cents, created_at, expires_at)
  VALUES (${deposit.id}, ${deposit.partner_id}, ${deposit.mode}, ${deposit.network},
    ${deposit.contract_address},
    ${deposit.index}, ${deposit.address}, ${deposit.addressHash}, ${deposit.amount_cents},
    ${deposit.created_at}, ${deposit.expires_at})
  RETURNING id`;

const insert = writeStatement((_, values: NewDeposit & ClaimWithResponse) => {
  const made = cte('made', insertRow(values));
  const { answered, isStored } = storeKeyed(made, values);
  return sql<{ is_stored: boolean }>`${withCtes([made, answered])} SELECT ${isStored} AS is_stored`;
});
