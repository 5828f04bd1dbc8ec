import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { Gauge, type Metric } from 'prom-client';
import { describeError } from '../process/describe-error.ts';

/** The other metrics wait no longer than this for PostgreSQL. */
const READ_TIMEOUT_MS = 2_000;

export interface DatabaseGauge<Read> {
  name: string;
  help: string;
  labels: readonly string[];
  /** Its samples: the labels' values in their order, and the number. */
  measure(read: Read): [labels: string[], value: number][];
}

/**
 * Gauges of the whole database, the same from every API process. If they can't be read they are left out, and the other
 * metrics are still there.
 * @param options.what is read, for the log
 */
export function databaseGauges<Read>(options: {
  what: string;
  read(): Promise<Read>;
  gauges: readonly DatabaseGauge<Read>[];
  logger: Logger;
}): Metric[] {
  const { what, read, gauges, logger } = options;
  let reading: Promise<Read> | undefined;
  // All gauges are collected at the same moment.
  const readOnce = () => {
    reading ??= read().finally(() => {
      reading = undefined;
    });
    const tooLate = sleep(READ_TIMEOUT_MS, undefined, { ref: false }).then(() => {
      throw new Error(`PostgreSQL did not answer within ${READ_TIMEOUT_MS} ms`);
    });
    return Promise.race([reading, tooLate]);
  };
  return gauges.map(
    ({ name, help, labels, measure }) =>
      new Gauge({
        ...{ name, help, labelNames: labels, registers: [] },
        async collect() {
          this.reset();
          try {
            for (const [values, value] of measure(await readOnce()))
              this.set(Object.fromEntries(labels.map((label, index) => [label, values[index] ?? ''])), value);
          } catch (error) {
            logger.warn({ error: describeError(error) }, `could not read ${what} for the metrics`);
          }
        },
      }),
  );
}
