import type { Logger } from 'pino';
import type { Metric } from 'prom-client';
import { depositsMeasured } from '../deposits/metrics.ts';
import type { ChainName } from '../domain/deposit.ts';
import { type InboxTotals, readInboxTotals, roomUsed } from '../issuers/inbox/room.ts';
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
    gauges(inboxMeasured(orm)),
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
      samples: ({ completedAt }) => [[[], Date.parse(completedAt) / 1_000]],
    },
    {
      name: 'ledger_check_duration_seconds',
      help: 'How long the last check of the ledger took',
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
      help: 'Cards, movements of money and payments that were the same here and at the card network',
      samples: ({ matched }) => [[[], matched]],
    },
    {
      name: 'reconciliation_corrected',
      help: 'Payments that the last comparison corrected to what the card network has',
      samples: ({ corrected }) => [[[], corrected]],
    },
    {
      name: 'reconciliation_timestamp_seconds',
      help: "When the last comparison with the card network's lists was completed",
      samples: ({ completedAt }) => [[[], Date.parse(completedAt) / 1_000]],
    },
    {
      name: 'reconciliation_duration_seconds',
      help: "How long the last comparison with the card network's lists took",
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
        samples: (lagSeconds) => [[[], lagSeconds]],
      },
    ],
  };
}

/** What has changed at the card network and waits, and how much of the room for it that takes. */
function inboxMeasured(orm: Orm): Measured<InboxTotals> {
  return {
    name: 'network_inbox',
    source: { everyMs: 15_000, measure: () => readInboxTotals(orm) },
    gauges: [
      {
        name: 'network_inbox_waiting',
        help: 'Payments and transfers of the card network that wait to be looked at or booked',
        samples: ({ objects }) => [[[], objects]],
      },
      {
        name: 'network_inbox_longest_wait_seconds',
        help: 'How long the oldest of them has waited',
        samples: ({ oldestSeconds }) => [[[], oldestSeconds]],
      },
      {
        name: 'network_inbox_room_used_ratio',
        help: 'How much of the room for them is taken, by number or by bytes; at 1, the network is asked to repeat',
        samples: (totals) => [[[], roomUsed(totals)]],
      },
    ],
  };
}
