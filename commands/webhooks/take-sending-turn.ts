import { sql } from 'kysely';
import { readStatement, type Transactor, writeStatement } from '../../db/sql.ts';
import { ApiError } from '../../domain/api-error.ts';
import type { Tenant } from '../../domain/tenant.ts';

/** How many events a partner may have sent on request at once; one more comes back every second. */
const MOST_AT_ONCE = 60;

/**
 * Lets a partner have one event sent on request, in the caller's transaction, and holds its endpoint's row until the
 * end of it. The limit is kept as one time, at which the whole allowance is there again (the generic cell rate
 * algorithm), so it counts for all processes together.
 * @throws ApiError `webhook_endpoint_not_found`, `invalid_state` (the endpoint is disabled), `rate_limited`
 */
export async function takeSendingTurn(tx: Transactor, { partnerId, mode }: Tenant): Promise<void> {
  const [endpoint] = await lockEndpoint(tx, { partnerId, mode, mostAtOnce: MOST_AT_ONCE });
  if (endpoint === undefined) throw new ApiError('webhook_endpoint_not_found');
  if (endpoint.status === 'disabled') {
    throw new ApiError('invalid_state', {
      message: 'The webhook endpoint is disabled. Enable it with PUT /webhook-endpoint.',
    });
  }
  if (endpoint.wait_seconds > 0) {
    throw new ApiError('rate_limited', {
      message:
        'Too many events requested: the limit is 60 at once and one more each second. Retry after the number of seconds in Retry-After.',
      retryAfterSeconds: endpoint.wait_seconds,
    });
  }
  await takeOne(tx, { partnerId, mode });
}

const lockEndpoint = readStatement((db, { partnerId, mode, mostAtOnce }: Tenant & { mostAtOnce: number }) =>
  db
    .selectFrom('webhook_endpoint')
    .select([
      'status',
      sql<number>`ceil(extract(epoch FROM allowance_full_at - clock_timestamp()) + 1 - ${mostAtOnce})::float8`.as(
        'wait_seconds',
      ),
    ])
    .where('partner_id', '=', partnerId)
    .where('mode', '=', mode)
    .forNoKeyUpdate(),
);

const takeOne = writeStatement((db, { partnerId, mode }: Tenant) =>
  db
    .updateTable('webhook_endpoint')
    .set({
      allowance_full_at: sql<string>`greatest(allowance_full_at, clock_timestamp()) + interval '1 second'`,
    })
    .where('partner_id', '=', partnerId)
    .where('mode', '=', mode),
);
