import { readFileSync } from 'node:fs';
import type { DeliveryStatus, EventType } from '../../../domain/event.ts';
import type { Mode } from '../../../domain/mode.ts';
import { KeyRing } from '../../../platform/crypto/key-ring.ts';
import { lowestId, newId } from '../../../platform/crypto/new-id.ts';
import { query } from '../../../platform/db/sql.ts';
import { queueDueRetries } from '../../../webhooks/retries.ts';
import { sealEndpointSecret } from '../../../webhooks/secrets.ts';
import { deliverWebhookWorkflowId } from '../../../workflows/messages.ts';
import { connectTo, ownerUrlOf } from '../postgres.ts';
import type { TestPartner, TestStack } from '../stack.ts';

export const SECRET = `whsec_${Buffer.alloc(32, 1).toString('base64')}`;

export async function setUrl(
  stack: TestStack,
  partner: TestPartner,
  url: string,
  mode: Mode = 'test',
): Promise<void> {
  const ring = new KeyRing(stack.config.encryptionKeys);
  const id = newId('we');
  const secret = sealEndpointSecret(ring, id, SECRET);
  await query(
    stack.orm.em.fork(),
    `WITH changed AS (
       UPDATE webhook_endpoint SET url = $2, status = 'enabled', disabled_reason = NULL
       WHERE partner_id = $1 AND mode = $4 RETURNING 1
     )
     INSERT INTO webhook_endpoint (id, partner_id, mode, url, secret)
     SELECT $5, $1, $4, $2, $3 WHERE NOT EXISTS (SELECT FROM changed)`,
    [partner.id, url, secret, mode, id],
  );
}

/** The id of the endpoint that an event goes to; it goes to one. */
export async function endpointOf(stack: TestStack, eventId: string): Promise<string> {
  const [row] = await query<{ endpoint_id: string }>(
    stack.orm.em.fork(),
    'SELECT endpoint_id FROM delivery WHERE event_id = $1',
    [eventId],
  );
  return row?.endpoint_id ?? '';
}

/** The id of the workflow that delivers an event to its one endpoint. */
export const workflowIdOf = async (stack: TestStack, eventId: string): Promise<string> =>
  deliverWebhookWorkflowId(eventId, await endpointOf(stack, eventId));

/** Writes events as commands do, about no card. @returns their ids */
export async function writeEvents(
  stack: TestStack,
  partner: TestPartner,
  count: number,
  mode: Mode = 'test',
): Promise<string[]> {
  const ids = Array.from({ length: count }, () => newId('evt'));
  const created = new Date().toISOString();
  const bodies = ids.map((id) =>
    JSON.stringify({ id, type: 'ping', created, mode, data: exampleData('ping') }),
  );
  await query(
    stack.orm.em.fork(),
    `INSERT INTO event (id, partner_id, mode, type, body, created_at)
     SELECT e.id, $1, $5, 'ping', e.body, $2 FROM unnest($3::text[], $4::text[]) e (id, body)`,
    [partner.id, created, ids, bodies, mode],
  );
  return ids;
}

const DOCUMENT = JSON.parse(readFileSync(new URL('../../../docs/openapi.json', import.meta.url), 'utf8'));

function exampleData(type: EventType): object {
  return DOCUMENT.webhooks[type].post.requestBody.content['application/json'].example.data;
}

export interface DeliveryRow {
  status: DeliveryStatus;
  attempt_count: number;
  next_attempt_at: string | null;
  /** Whether the event's workflow knows the event's state. */
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

export async function countByStatus(stack: TestStack, partner: TestPartner): Promise<Record<string, number>> {
  const rows = await query<{ status: string; count: number }>(
    stack.orm.em.fork(),
    'SELECT status, count(*)::int AS count FROM delivery WHERE partner_id = $1 GROUP BY status',
    [partner.id],
  );
  return Object.fromEntries(rows.map(({ status, count }) => [status, count]));
}

/** As if the next attempts of failed events had been due that long ago. */
export async function makeDue(stack: TestStack, eventIds: string[], agoSeconds: number): Promise<void> {
  await query(
    stack.orm.em.fork(),
    `UPDATE delivery SET next_attempt_at = clock_timestamp() - $2 * interval '1 second'
     WHERE event_id = ANY ($1) AND status = 'retrying'`,
    [eventIds, agoSeconds],
  );
}

/** Has the next attempts of failed events made without their workflows, which are that late. */
export async function sendOverdue(stack: TestStack, eventIds: string[]): Promise<void> {
  await makeDue(stack, eventIds, 121);
  await queueDueRetries(stack.orm);
}

export interface SeededEvent {
  type?: EventType;
  mode?: Mode;
  ageMs?: number;
  status?: DeliveryStatus;
}

/**
 * Writes events about no card, as if they had been written that long ago and had reached that state.
 * @returns their ids, in the given order
 */
export async function seedEvents(
  stack: TestStack,
  partner: Pick<TestPartner, 'id'>,
  events: SeededEvent[],
): Promise<string[]> {
  const rows = events.map(({ type = 'card.issued', mode = 'test', ageMs = 0, status = 'delivered' }) => {
    const at = new Date(Date.now() - ageMs);
    const created = at.toISOString();
    const id = lowestId('evt', at).slice(0, 14) + newId('evt').slice(14);
    return {
      id,
      type,
      mode,
      status,
      created,
      body: JSON.stringify({ id, type, created, mode, data: exampleData(type) }),
    };
  });
  const json = JSON.stringify(rows);
  const record = 'r (id text, type text, mode text, status text, created timestamptz, body text)';
  {
    await using owner = await connectTo(ownerUrlOf(stack.config.databaseUrl));
    // In one transaction, or a relay would send them before their state is written.
    await owner.query('BEGIN');
    await owner.query(
      `INSERT INTO event (id, partner_id, mode, type, body, created_at)
       SELECT id, $2, mode, type, body, created FROM json_to_recordset($1) AS ${record}`,
      [json, partner.id],
    );
    await owner.query(
      `UPDATE delivery d SET status = r.status FROM json_to_recordset($1) AS ${record} WHERE d.event_id = r.id`,
      [json],
    );
    await owner.query('COMMIT');
  }
  return rows.map((row) => row.id);
}
