import { Pool } from 'undici';
import { newId } from '../../platform/crypto/new-id.ts';
import { signEvent } from '../../webhooks/secrets.ts';
import { type Measurement, summarize } from '../support/measure.ts';
import type { BenchReceiver } from '../webhook-receiver/start.ts';
import { requestBody, SECRET } from './load.ts';

/** Signed POSTs from one process, without a database. */
export async function measureFloor({ origin, forget }: BenchReceiver, count: number): Promise<Measurement> {
  const pool = new Pool(origin, { connections: 64 });
  const durationsMs: number[] = [];
  let left = count;
  const startedAt = performance.now();
  const turns = Array.from({ length: 64 }, async () => {
    while (left-- > 0) {
      const eventId = newId('evt');
      const body = requestBody(eventId);
      const sentAt = performance.now();
      const headers = signEvent({
        eventId,
        body,
        secrets: [SECRET],
        standardWebhooks: false,
        nowMs: Date.now(),
      });
      const answer = await pool.request({ method: 'POST', path: '/ok/floor', headers, body });
      await answer.body.dump();
      durationsMs.push(performance.now() - sentAt);
    }
  });
  await Promise.all(turns);
  const perSecond = count / ((performance.now() - startedAt) / 1_000);
  await pool.close();
  await forget();
  return { perSecond, ...summarize(durationsMs) };
}
