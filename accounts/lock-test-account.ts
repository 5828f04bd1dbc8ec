import { sql } from 'kysely';
import type { AccountClock } from '../domain/account-clock.ts';
import { writeStatement } from '../platform/db/sql.ts';
import type { FoundClaim, KeyedRequest } from '../requests/claim.ts';
import type { OpenCommand } from '../requests/command-context.ts';
import { type KeyedResponse, readReplay } from '../requests/respond-once.ts';

/**
 * Holds the account's clock and, if the operation counts something, locks its usage; then looks the key up.
 * @returns the stored response if the key has one
 * @throws ApiError `idempotency_conflict`
 */
export async function lockTestAccount(
  { tx, ring }: OpenCommand,
  request: KeyedRequest,
  { counts }: { counts: boolean },
): Promise<{ clock: AccountClock } | KeyedResponse> {
  const { partnerId, key } = request;
  const [row] = await testAccount(tx, { partnerId, key, counts });
  if (row === undefined) throw new Error(`there is no account ${partnerId}`);
  return readReplay(ring, request, row) ?? { clock: row.clock };
}

const testAccount = writeStatement(
  (_, values: { partnerId: string; key: string | null; counts: boolean }) => sql<
    FoundClaim & { clock: AccountClock }
  >`
    SELECT f.claim_id, f.fingerprint, f.response_status, f.response_body, a.clock
    FROM (SELECT p.id AS partner_id, lock_test_clock(p.id) AS clock
      FROM (SELECT ${values.partnerId}::text AS id) p OFFSET 0) a
      CROSS JOIN LATERAL lock_test_card_terms(a.partner_id, ${values.key}, NULL, NULL, ${values.counts}) f`,
);
