import type { Logger } from 'pino';
import type { Metric } from 'prom-client';
import type { Orm } from '../db/orm.ts';
import type { TronNetwork } from '../domain/deposit.ts';
import type { AttentionConfig } from '../operator/attention/read-attention.ts';
import { attentionMeasured } from './attention-metrics.ts';
import { depositsMeasured } from './deposit-metrics.ts';
import { LEDGER_MEASURED } from './ledger-metrics.ts';
import { type Measured, measuredGauges, measurementMetrics } from './measured-gauges.ts';
import { webhooksMeasured } from './webhook-metrics.ts';

/** What the metrics of the whole database need. */
export interface DatabaseMetricsOptions extends AttentionConfig {
  orm: Orm;
  /** Null: there is no chain to read. */
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
    gauges(LEDGER_MEASURED),
  ]);
}
