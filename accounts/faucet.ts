import { sql } from 'kysely';
import { ApiError } from '../domain/api-error.ts';
import { applyPosting } from '../ledger/apply-posting.ts';
import type { Posting } from '../ledger/posting.ts';
import { refuseTooLarge } from '../ledger/refuse-too-large.ts';
import { readStatement, type Transactor, writeStatement } from '../platform/db/sql.ts';
import type { KeyedRequest } from '../requests/claim.ts';
import type { CommandContext } from '../requests/command-context.ts';
import { type KeyedResponse, respondOnce, respondWith } from '../requests/respond-once.ts';
import { lockTestAccount } from './lock-test-account.ts';
import { presentBalance } from './resource.ts';

const MAX_CREDITS_PER_HOUR = 60;

/**
 * Credits pretend money to a test balance, at most 60 times in any hour
 * (docs/partners/money-fees-and-limits.md). A refused request is not stored and does not count.
 * @throws ApiError `rate_limited`, `idempotency_conflict`, or `validation_failed` if the balance would exceed
 * its maximum.
 */
export function creditFaucet(
  context: CommandContext,
  request: KeyedRequest<'credit_faucet'>,
  amountCents: number,
): Promise<KeyedResponse> {
  const { ring } = context;
  const { partnerId, resourceId: creditId } = request;
  return respondOnce(context, request, async (tx) => {
    // Locks the account's usage row, so that credits are counted one at a time.
    const locked = await lockTestAccount({ tx, ring }, request, { counts: true });
    if ('replayed' in locked) return locked;
    await limitFaucetCredits(tx, partnerId);
    await insertFaucetCredit(tx, { id: creditId, partnerId, amountCents });
    const posting = faucetOperation(creditId, partnerId, amountCents);
    const moved = await applyPosting(tx, posting).catch(refuseTooLarge);
    if (moved.outcome === 'insufficient_funds') throw new Error('a faucet never lacks funds');
    if (moved.prepaid === null) throw new Error(`${posting.operationId} did not move the prepaid balance`);
    return respondWith({ tx, ring }, request, 201, presentBalance('test', moved.prepaid));
  });
}

/** @throws ApiError `rate_limited` */
async function limitFaucetCredits(tx: Transactor, partnerId: string): Promise<void> {
  const [lastHour] = await faucetCreditsInLastHour(tx, { partnerId });
  if (lastHour !== undefined && lastHour.credits >= MAX_CREDITS_PER_HOUR) {
    throw new ApiError('rate_limited', {
      message: `You can credit a test balance ${MAX_CREDITS_PER_HOUR} times in any hour. Retry after the number of seconds in Retry-After, with the same Idempotency-Key.`,
      retryAfterSeconds: Math.max(1, lastHour.wait_seconds),
    });
  }
}

const faucetCreditsInLastHour = readStatement(
  (_, { partnerId }: { partnerId: string }) => sql<{ credits: number; wait_seconds: number }>`
    SELECT count(*)::int AS credits,
      ceil(extract(epoch FROM min(created_at) + interval '1 hour' - account_now(${partnerId}, 'test')))::int AS wait_seconds
    FROM faucet_credit
    WHERE partner_id = ${partnerId} AND mode = 'test'
      AND created_at > account_now(${partnerId}, 'test') - interval '1 hour'`,
);

const insertFaucetCredit = writeStatement(
  (_, { id, partnerId, amountCents }: { id: string; partnerId: string; amountCents: number }) => sql`
    INSERT INTO faucet_credit (id, partner_id, mode, amount_cents, created_at)
    VALUES (${id}, ${partnerId}, 'test', ${amountCents}, account_now(${partnerId}, 'test'))`,
);

function faucetOperation(creditId: string, partnerId: string, amountCents: number): Posting {
  const flow = { code: 'fund_faucet', debit: 'faucet', credit: 'prepaid' } as const;
  return {
    operationId: `faucet/${creditId}`,
    partnerId,
    mode: 'test',
    transfers: [{ step: 'credit', phase: 'single', amountCents, ...flow }],
  };
}
