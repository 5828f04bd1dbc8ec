import type { Logger } from 'pino';
import type { Metric } from 'prom-client';
import type { LedgerCheck } from '../commands/operations/ledger-checks.ts';
import type { Orm } from '../db/orm.ts';
import type { TronNetwork } from '../domain/deposit.ts';
import type { AttentionConfig } from '../operator/attention/read-attention.ts';
import { attentionMeasured } from './attention-metrics.ts';
import { depositsMeasured } from './deposit-metrics.ts';
import { type Measured, measuredGauges, measurementMetrics } from './measured-gauges.ts';
import { networkMessagesMeasured } from './network-message-metrics.ts';
import { webhooksMeasured } from './webhook-metrics.ts';

/** The dependencies of the metrics of the whole database. */
interface DatabaseMetricsOptions extends AttentionConfig {
  orm: Orm;
  /** Null if there is no chain to read. */
  tronNetwork: TronNetwork | null;
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
    gauges(LEDGER_MEASURED),
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
