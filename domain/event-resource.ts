import { z } from 'zod';
import { DeliveryStatus } from './delivery-status.ts';
import { EventType } from './event-type.ts';
import { Mode } from './mode.ts';

/** How long events are kept, in days (decisions.md, "Event"). */
export const EVENTS_KEPT_DAYS = 30;

const DeliveryAttempt = z.object({
  number: z.int(),
  status: z.enum(['succeeded', 'failed']),
  http_status: z.int().nullable(),
  started_at: z.iso.datetime(),
  duration_ms: z.int(),
  error: z.string().nullable().meta({ description: 'A short code where there was no 2xx.' }),
});

/** An event: the envelope that is sent, and how far it got (decisions.md, "Event"). */
export const EventResource = z.object({
  id: z.string(),
  object: z.literal('event'),
  type: EventType,
  created: z.iso.datetime(),
  mode: Mode,
  data: z.looseObject({}).meta({
    description:
      'The full resources after the change, each under its name: `card` of card.*, `topup` and `card` of topup.*, ' +
      '`transaction` and `card` of card.transaction.created, `deposit` of deposit.confirmed.',
  }),
  delivery: z.object({
    status: DeliveryStatus,
    next_attempt_at: z.iso.datetime().nullable(),
    attempts: z.array(DeliveryAttempt),
  }),
});
export type EventResource = z.infer<typeof EventResource>;

/** An event with its delivery, as the driver gives it. */
export interface EventRow {
  id: string;
  /** The envelope's exact text. */
  body: string;
  status: DeliveryStatus;
  next_attempt_at: Date | string | null;
  /** Null where there was none yet. */
  attempts: AttemptRow[] | null;
}

export interface AttemptRow {
  number: number;
  delivered: boolean;
  http_status: number | null;
  started_at: string;
  duration_ms: number;
  error: string | null;
}

export function presentEvent({ body, status, next_attempt_at, attempts }: EventRow): EventResource {
  const { id, type, created, mode, data } = JSON.parse(body);
  const nextAttemptAt = next_attempt_at === null ? null : new Date(next_attempt_at).toISOString();
  return {
    id,
    object: 'event',
    type,
    created,
    mode,
    data,
    delivery: { status, next_attempt_at: nextAttemptAt, attempts: (attempts ?? []).map(presentAttempt) },
  };
}

export function presentAttempt(row: AttemptRow): z.infer<typeof DeliveryAttempt> {
  return {
    number: row.number,
    status: row.delivered ? 'succeeded' : 'failed',
    http_status: row.http_status,
    started_at: new Date(row.started_at).toISOString(),
    duration_ms: row.duration_ms,
    error: row.error,
  };
}
