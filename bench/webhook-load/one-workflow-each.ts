import { Client, Connection } from '@temporalio/client';
import { newId } from '../../platform/crypto/new-id.ts';
import { query } from '../../platform/db/sql.ts';
import { DELIVER_WEBHOOK, deliverWebhookWorkflowId, requeue } from '../../workflows/messages.ts';
import { type Measurement, monotonicMs } from '../support/measure.ts';
import type { BenchService } from '../support/service.ts';
import type { BenchReceiver } from '../webhook-receiver/start.ts';
import { allReceived, createEndpoints, requestBody, summary } from './load.ts';

/** The alternative to the relay: a workflow for each event (docs/decisions/webhook-relay.md). */
export async function oneWorkflowEach(service: BenchService, receiver: BenchReceiver): Promise<Measurement> {
  const [to] = await createEndpoints(service, receiver, { endpoints: 1 });
  const { address, namespace } = service.temporal;
  const connection = await Connection.connect({ address });
  const client = new Client({ connection, namespace });
  await receiver.forget();
  const em = service.orm.em.fork();
  const ids = Array.from({ length: 500 }, () => newId('evt'));
  await query(
    em,
    `INSERT INTO event (id, partner_id, mode, type, body, created_at)
     SELECT e.id, $1, 'test', 'ping', e.body, now() FROM unnest($2::text[], $3::text[]) e (id, body)`,
    [to?.partnerId, ids, ids.map(requestBody)],
  );
  // Hidden from the relay, so that only their workflows get them sent.
  await query(em, `UPDATE delivery SET status = 'retrying' WHERE event_id = ANY ($1)`, [ids]);
  const committed = new Map(ids.map((id) => [id, monotonicMs()]));
  const rows = await query<{ event_id: string; endpoint_id: string }>(
    em,
    'SELECT event_id, endpoint_id FROM delivery WHERE event_id = ANY ($1)',
    [ids],
  );
  const waiting = rows.map((row) => ({ eventId: row.event_id, endpointId: row.endpoint_id }));
  const turns = Array.from({ length: 20 }, async () => {
    for (let delivery = waiting.pop(); delivery !== undefined; delivery = waiting.pop()) {
      await client.workflow.signalWithStart(DELIVER_WEBHOOK, {
        workflowId: deliverWebhookWorkflowId(delivery.eventId, delivery.endpointId),
        taskQueue: service.webhooksTaskQueue,
        args: [delivery],
        signal: requeue,
      });
    }
  });
  await Promise.all(turns);
  const received = await allReceived(receiver, committed);
  await connection.close();
  return summary(committed, received);
}
