import type { Logger } from 'pino';
import type { Metric } from 'prom-client';
import { depositsMeasured } from '../deposits/metrics.ts';
import type { ChainName } from '../domain/deposit.ts';
import { MAX_WAITING_BYTES, MAX_WAITING_MESSAGES } from '../issuers/inbox/kept-messages.ts';
import { readTotals } from '../issuers/inbox/kept-transactions-attention.ts';
import { readWaitingEvents, type WaitingEvents } from '../issuers/inbox/network-events-attention.ts';
import type { ReconciliationCounts } from '../issuers/reconciliation/reconcile.ts';
import { readExpiryLag } from '../payments/expire.ts';
import type { Orm } from '../platform/db/orm.ts';
import { ATTENTION_KINDS, type AttentionKind } from '../platform/monitoring/attention-item.ts';
import { type Measured, measuredGauges, measurementMetrics } from '../platform/monitoring/measured-gauges.ts';
import { webhooksMeasured } from '../webhooks/metrics.ts';
import { type AttentionConfig, readItems } from './attention.ts';
import type { LedgerCheck } from './check-ledger.ts';

/** The dependencies of the metrics of the whole database. */
interface DatabaseMetricsOptions extends AttentionConfig {
  orm: Orm;
  /** Null if there is no chain to read. */
  tronNetwork: ChainName | null;
  logger: Logger;
}

/** The metrics of the whole database, the same from every process. */
export function createDatabaseMetrics(options: DatabaseMetricsOptions): Metric[] {
  const { orm, tronNetwork } = options;
  const gauges = <Result>(measured: Measured<Result>) => measuredGauges(measured, options);
  return measurementMetrics([
    gauges(webhooksMeasured(orm)),
    gauges(depositsMeasured(orm, tronNetwork)),
    gauges(attentionMeasured(orm, options)),
    gauges(networkMessagesMeasured(orm)),
    gauges(networkEventsMeasured(orm)),
    gauges(authorizationsMeasured(orm)),
    gauges(LEDGER_MEASURED),
    gauges(RECONCILIATION_MEASURED),
  ]);
}

/** The result of the last check of the ledger. */
const LEDGER_MEASURED: Measured<LedgerCheck> = {
  name: 'ledger_check',
  source: null,
  gauges: [
    {
      name: 'ledger_check_violations',
      help: 'Violations that the last check of the ledger found, up to 100, by the number of the invariant',
      labels: ['invariant'],
      samples: ({ violations }) => Object.entries(violations).map(([number, count]) => [[number], count]),
    },
    {
      name: 'ledger_check_timestamp_seconds',
      help: 'When the last check of the ledger was completed',
      labels: [],
      samples: ({ completedAt }) => [[[], Date.parse(completedAt) / 1_000]],
    },
    {
      name: 'ledger_check_duration_seconds',
      help: 'How long the last check of the ledger took',
      labels: [],
      samples: ({ durationSeconds }) => [[[], durationSeconds]],
    },
  ],
};

/** The result of the last comparison with the card network's lists. */
const RECONCILIATION_MEASURED: Measured<ReconciliationCounts> = {
  name: 'reconciliation',
  source: null,
  gauges: [
    {
      name: 'reconciliation_findings',
      help: "What the last comparison with the card network's lists found, by problem",
      labels: ['problem'],
      samples: ({ found }) => Object.entries(found).map(([problem, count]) => [[problem], count]),
    },
    {
      name: 'reconciliation_matched',
      help: 'Cards, movements of money and transactions that were the same here and at the card network',
      labels: [],
      samples: ({ matched }) => [[[], matched]],
    },
    {
      name: 'reconciliation_booked',
      help: 'Transactions that the card network never told us, and that the last comparison took',
      labels: [],
      samples: ({ booked }) => [[[], booked]],
    },
    {
      name: 'reconciliation_timestamp_seconds',
      help: "When the last comparison with the card network's lists was completed",
      labels: [],
      samples: ({ completedAt }) => [[[], Date.parse(completedAt) / 1_000]],
    },
    {
      name: 'reconciliation_duration_seconds',
      help: "How long the last comparison with the card network's lists took",
      labels: [],
      samples: ({ durationSeconds }) => [[[], durationSeconds]],
    },
  ],
};

/** The lines of `attention list`, by kind. */
function attentionMeasured(orm: Orm, config: AttentionConfig): Measured<AttentionCount[]> {
  return {
    name: 'attention',
    source: {
      everyMs: 30_000,
      async measure() {
        const items = await readItems(orm, config);
        return ATTENTION_KINDS.map((kind) => {
          // The oldest is first.
          const ofKind = items.filter((item) => item.kind === kind);
          return { kind, items: ofKind.length, since: ofKind[0]?.since ?? null };
        });
      },
    },
    gauges: [
      {
        name: 'attention_items',
        help: 'Items that are waiting for a person, as in "attention list", by kind',
        labels: ['kind'],
        samples: (counts) => counts.map(({ kind, items }) => [[kind], items]),
      },
      {
        name: 'attention_longest_wait_seconds',
        help: 'How long the oldest of them has waited, by kind',
        labels: ['kind'],
        samples: (counts) =>
          counts.map(({ kind, since }) => [
            [kind],
            since === null ? 0 : Math.max(0, Date.now() - Date.parse(since)) / 1_000,
          ]),
      },
    ],
  };
}

interface AttentionCount {
  kind: AttentionKind;
  items: number;
  since: string | null;
}

/** How far the expiry of authorizations is behind. */
function authorizationsMeasured(orm: Orm): Measured<number> {
  return {
    name: 'authorizations',
    source: { everyMs: 15_000, measure: () => readExpiryLag(orm.em.fork()) },
    gauges: [
      {
        name: 'authorization_expiry_lag_seconds',
        help: 'How long the oldest authorization that should have expired has been due',
        labels: [],
        samples: (lagSeconds) => [[[], lagSeconds]],
      },
    ],
  };
}

/** What the network reported and waits to be booked, and how much of the room for it that takes. */
function networkMessagesMeasured(orm: Orm): Measured<{ messages: number; bytes: number }> {
  return {
    name: 'network_messages',
    source: { everyMs: 15_000, measure: () => readTotals(orm) },
    gauges: [
      {
        name: 'network_messages_waiting',
        help: 'Transactions that the card network reported and that could not be booked yet',
        labels: [],
        samples: ({ messages }) => [[[], messages]],
      },
      {
        name: 'network_messages_room_used_ratio',
        help: 'How much of the room for them is taken, by number or by bytes; at 1, the network is asked to repeat',
        labels: [],
        samples: ({ messages, bytes }) => [
          [[], Math.max(messages / MAX_WAITING_MESSAGES, bytes / MAX_WAITING_BYTES)],
        ],
      },
    ],
  };
}

/** The card network's events that wait to be read. */
function networkEventsMeasured(orm: Orm): Measured<WaitingEvents> {
  return {
    name: 'network_events',
    source: { everyMs: 15_000, measure: () => readWaitingEvents(orm) },
    gauges: [
      {
        name: 'network_events_waiting',
        help: 'Events of the card network that were kept and are not read yet',
        labels: [],
        samples: ({ events }) => [[[], events]],
      },
      {
        name: 'network_events_longest_wait_seconds',
        help: 'How long the oldest of them has waited',
        labels: [],
        samples: ({ oldestSeconds }) => [[[], oldestSeconds]],
      },
      {
        name: 'network_events_room_used_ratio',
        help: 'How much of the room for them is taken, by number or by bytes; at 1, the network is asked to repeat',
        labels: [],
        samples: ({ roomUsed }) => [[[], roomUsed]],
      },
    ],
  };
}
