import { randomUUID } from 'node:crypto';
import type { CommandContext } from '../../commands/command-context.ts';
import { claimIdempotencyKey } from '../../commands/idempotency/claim-idempotency-key.ts';
import { sealRequest } from '../../commands/idempotency/idempotency-response.ts';
import { newId } from '../../crypto/new-id.ts';
import type { Orm } from '../../db/orm.ts';
import { query } from '../../db/sql.ts';
import type { Tenant } from '../../domain/tenant.ts';

/** What a process leaves behind that dies right after it has claimed the key of a POST /cards. @returns the claim's id */
export async function abandonIssuance({ orm, ring }: CommandContext, tenant: Tenant): Promise<string> {
  const claimId = newId('claim');
  const body = { amount: 10_000, external_ref: randomUUID() };
  await claimIdempotencyKey(orm.em.fork(), ring, {
    ...{ ...tenant, claimId, key: randomUUID(), operation: 'create_card', cardId: null, leaseMs: 0 },
    fingerprint: Buffer.from(body.external_ref),
    sealedRequest: sealRequest(ring, claimId, body),
    requestId: newId('req'),
  });
  return claimId;
}

/** Many abandoned claims at once, whose ids are so long that Temporal refuses workflows named after them. */
export async function abandonUnstartable(orm: Orm, tenant: Tenant, count: number): Promise<void> {
  await query(
    orm.em.fork(),
    `INSERT INTO idempotency_claim (id, partner_id, mode, operation, fingerprint, request, request_id, lease_expires_at)
     SELECT 'claim_' || repeat('0', 1000) || n, $1, $2, 'create_card', '', '', 'req_1', now() - interval '1 minute'
     FROM generate_series(1, $3) n`,
    [tenant.partnerId, tenant.mode, count],
  );
}
