import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { Gauge, type Metric } from 'prom-client';
import type { Orm } from '../db/orm.ts';
import { describeError } from '../process/describe-error.ts';
import { asService } from '../process/work-context.ts';
import { type Latest, readMeasurement, recordMeasurement, takeMeasurement } from './measurements.ts';
import type { MeasurementName } from './tables.ts';

/** The longest that a scrape waits for a measurement. */
const MAX_WAIT_MS = 1_000;
/** A measurement older than this is left out. */
const MAX_KEPT_MS = 300_000;

/** Gauges of the whole database. One process measures them for all, and every process exports them. */
export interface Measured<Result> {
  name: MeasurementName;
  /**
   * How to measure it, at most once per `everyMs` across all processes; null if something else writes it,
   * whatever its age. Its statements run one after another, so that it takes one connection however slow the
   * database is.
   */
  source: { everyMs: number; measure(): Promise<Result> } | null;
  gauges: readonly MeasuredGauge<Result>[];
}

export interface MeasuredGauge<Result> {
  name: string;
  help: string;
  /** If left out, there are none, and one sample. */
  labels?: readonly string[];
  /** The samples: label values in order, and the number. The result has been through JSON. */
  samples(result: Result): [labels: string[], value: number][];
}

interface MeasuredGauges {
  name: MeasurementName;
  metrics: Metric[];
  measuredAt(): Promise<Date | null>;
}

/** Creates a measurement's gauges. If it can't be read, only these gauges are left out. */
export function measuredGauges<Result>(
  { name, source, gauges }: Measured<Result>,
  { orm, logger }: { orm: Orm; logger: Logger },
): MeasuredGauges {
  let latest: Latest<Result> | null = null;
  let reading: Promise<void> | undefined;

  async function read(): Promise<void> {
    if (source === null) {
      latest = await readMeasurement<Result>(orm, name);
      return;
    }
    const { everyMs } = source;
    const { isTaken, ...known } = await takeMeasurement<Result>(orm, name, {
      leaseMs: everyMs,
      longestMs: everyMs,
    });
    latest = known.latest;
    if (!isTaken) return;
    const result = await source.measure();
    latest = { measuredAt: new Date(), result };
    await recordMeasurement(orm, name, result);
  }

  async function readOrLog(): Promise<void> {
    try {
      await asService('metrics', read);
    } catch (error) {
      logger.warn(
        { measurement: name, error: describeError(error) },
        'could not take a measurement for the metrics',
      );
    } finally {
      reading = undefined;
    }
  }

  /**
   * All gauges are collected at once, so they share one read. No scrape waits for one that takes too long.
   */
  async function readOnce(): Promise<Latest<Result> | null> {
    reading ??= Promise.race([readOrLog(), sleep(MAX_WAIT_MS, undefined, { ref: false })]);
    await reading;
    const isTooOld = source !== null && latest !== null && Date.now() - +latest.measuredAt > MAX_KEPT_MS;
    return isTooOld ? null : latest;
  }

  return {
    name,
    measuredAt: async () => (await readOnce())?.measuredAt ?? null,
    metrics: gauges.map(
      ({ samples, labels = [], ...described }) =>
        new Gauge({
          ...described,
          labelNames: labels,
          registers: [],
          async collect() {
            this.reset();
            const known = await readOnce();
            if (known === null) return;
            for (const [values, value] of samples(known.result))
              this.set(Object.fromEntries(labels.map((label, index) => [label, values[index] ?? ''])), value);
          },
        }),
    ),
  };
}

/** The gauges of all measurements, and when each was measured. */
export function measurementMetrics(all: readonly MeasuredGauges[]): Metric[] {
  const times = new Gauge({
    name: 'measurement_timestamp_seconds',
    help: 'When each measurement of the whole database was taken, by measurement',
    labelNames: ['measurement'],
    registers: [],
    async collect() {
      this.reset();
      const taken = await Promise.all(
        all.map(async ({ name, measuredAt }) => ({ name, at: await measuredAt() })),
      );
      for (const { name, at } of taken) {
        if (at !== null) this.set({ measurement: name }, at.getTime() / 1_000);
      }
    },
  });
  return [times, ...all.flatMap(({ metrics }) => metrics)];
}
