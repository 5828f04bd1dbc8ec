import { sealEndpointSecret } from '../../../commands/webhooks/endpoint-secret.ts';
import { KeyRing } from '../../../crypto/key-ring.ts';
import { newId } from '../../../crypto/new-id.ts';
import { query } from '../../../db/sql.ts';
import type { DeliveryStatus } from '../../../domain/event.ts';
import type { TestPartner, TestStack } from '../stack.ts';

export const SECRET = `whsec_${Buffer.alloc(32, 1).toString('base64')}`;

/** The partner's endpoint for test mode. */
export async function setUrl(stack: TestStack, partner: TestPartner, url: string): Promise<void> {
  const ring = new KeyRing(stack.config.encryptionKeys);
  const secret = sealEndpointSecret(ring, { partner_id: partner.id, mode: 'test' }, SECRET);
  await query(
    stack.orm.em.fork(),
    `INSERT INTO webhook_endpoint (partner_id, mode, url, secret) VALUES ($1, 'test', $2, $3)
     ON CONFLICT (partner_id, mode) DO UPDATE SET url = excluded.url, status = 'enabled', disabled_reason = NULL`,
    [partner.id, url, secret],
  );
}

/** Events as commands write them, about no card. @returns their ids */
export async function writeEvents(stack: TestStack, partner: TestPartner, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, () => newId('evt'));
  const created = new Date().toISOString();
  const bodies = ids.map((id) => JSON.stringify({ id, type: 'ping', created, mode: 'test', data: {} }));
  await query(
    stack.orm.em.fork(),
    `INSERT INTO event (id, partner_id, mode, type, body, created_at)
     SELECT e.id, $1, 'test', 'ping', e.body, $2 FROM unnest($3::text[], $4::text[]) e (id, body)`,
    [partner.id, created, ids, bodies],
  );
  return ids;
}

export interface DeliveryRow {
  status: DeliveryStatus;
  attempt_count: number;
  next_attempt_at: string | null;
  /** Whether the event's workflow has heard how it stands. */
  workflow: 'none' | 'untold' | 'told';
}

export async function readRow(stack: TestStack, eventId: string): Promise<DeliveryRow> {
  const [row] = await query<DeliveryRow>(
    stack.orm.em.fork(),
    'SELECT status, attempt_count, next_attempt_at, workflow FROM delivery WHERE event_id = $1',
    [eventId],
  );
  if (row === undefined) throw new Error(`event ${eventId} has no delivery`);
  return row;
}

/** How many of a partner's events stand how. */
export async function countByStatus(stack: TestStack, partner: TestPartner): Promise<Record<string, number>> {
  const rows = await query<{ status: string; count: number }>(
    stack.orm.em.fork(),
    'SELECT status, count(*)::int AS count FROM delivery WHERE partner_id = $1 GROUP BY status',
    [partner.id],
  );
  return Object.fromEntries(rows.map(({ status, count }) => [status, count]));
}
