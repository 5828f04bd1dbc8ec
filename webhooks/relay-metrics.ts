import { Gauge, Histogram, type Metric } from 'prom-client';

interface MadeAttempt {
  durationMs: number;
  httpStatus: number | null;
  /** A code of DeliveryError, or the HTTP status; null if the event was delivered. */
  error: string | null;
}

interface RelayMetrics {
  observe(attempt: MadeAttempt): void;
  all: Metric[];
}

/** The metrics of this process's relay. None of them names an account. */
export function createRelayMetrics(relay: {
  inFlight(): number;
  endpoints(): { full: number; slowed: number };
}): RelayMetrics {
  const gauge = (name: string, help: string, read: () => number) =>
    new Gauge({
      name,
      help,
      registers: [],
      collect() {
        this.set(read());
      },
    });
  const durations = new Histogram({
    name: 'webhook_attempt_duration_seconds',
    help: "Time until a receiver's status line, or until the attempt failed, by outcome",
    labelNames: ['outcome'],
    buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20],
    registers: [],
  });
  return {
    observe: (attempt) => durations.observe({ outcome: attemptOutcome(attempt) }, attempt.durationMs / 1_000),
    all: [
      durations,
      gauge('webhook_events_in_flight', 'Events that this process is sending or recording', relay.inFlight),
      gauge(
        'webhook_endpoints_full',
        'Endpoints with as many attempts in flight as they may have from this process: their other events wait',
        () => relay.endpoints().full,
      ),
      gauge(
        'webhook_endpoints_slowed',
        'Endpoints that may have fewer attempts in flight than they began with, since attempts failed',
        () => relay.endpoints().slowed,
      ),
    ],
  };
}

/** One of some twenty values, so that the metric has few series. */
function attemptOutcome({ error, httpStatus }: MadeAttempt): string {
  if (error === null) return 'delivered';
  return httpStatus === null ? error : `http_${Math.floor(httpStatus / 100)}xx`;
}
