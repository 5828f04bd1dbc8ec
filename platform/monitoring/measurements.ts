import { sql } from 'kysely';
import type { Row } from '../db/entities.ts';
import { hasPassed } from '../db/has-passed.ts';
import type { Orm } from '../db/orm.ts';
import { ASYNCHRONOUS_COMMIT, autocommitStatement, readStatement } from '../db/sql.ts';
import type { MeasurementName } from './tables.ts';

export interface Latest<Result> {
  measuredAt: Date;
  /** As parsed from JSON. */
  result: Result;
}

/** The last measurement, and whether the caller should take a new one now. */
interface Measurement<Result> {
  /** Null if it has never been measured. */
  latest: Latest<Result> | null;
  /** True for one caller of all processes, until its lease ends. */
  isTaken: boolean;
}

/** @returns null if it has never been measured */
export async function readMeasurement<Result>(
  orm: Orm,
  name: MeasurementName,
): Promise<Latest<Result> | null> {
  return latestMeasurement<Result>((await read(orm.em.fork(), { name }))[0]);
}

const read = readStatement((db, { name }: { name: MeasurementName }) =>
  db.selectFrom('measurement').select(['measured_at', 'result']).where('name', '=', name),
);

function latestMeasurement<Result>(
  row: Row<'measurement', 'measured_at' | 'result'> | undefined,
): Latest<Result> | null {
  if (row?.measured_at == null) return null;
  return { measuredAt: new Date(row.measured_at), result: row.result as Result };
}

/**
 * Reads a measurement, and takes it if it is due. If whoever took it dies, it is due again after the lease.
 * @param times.leaseMs how long nobody else takes it
 * @param times.longestMs how far ahead it is ever due
 */
export async function takeMeasurement<Result>(
  orm: Orm,
  name: MeasurementName,
  times: { leaseMs: number; longestMs: number },
): Promise<Measurement<Result>> {
  const [row] = await take(orm, { name, ...times });
  return { latest: latestMeasurement<Result>(row), isTaken: row?.is_taken ?? false };
}

interface TakenRow extends Row<'measurement', 'measured_at' | 'result'> {
  is_taken: boolean;
}

interface TakeValues {
  name: MeasurementName;
  leaseMs: number;
  longestMs: number;
}

// Written out: one round trip returns the row whether or not it is taken.
const take = autocommitStatement(
  (_, { name, leaseMs, longestMs }: TakeValues) => sql<TakenRow>`
  WITH ${ASYNCHRONOUS_COMMIT}, taken AS (
    UPDATE measurement SET due_at = clock_timestamp() + ${leaseMs} * interval '1 millisecond'
    FROM asynchronous_commit WHERE name = ${name} AND ${hasPassed('due_at', longestMs)}
    RETURNING name
  )
  SELECT m.measured_at, m.result, EXISTS (SELECT FROM taken) AS is_taken FROM measurement m
    WHERE m.name = ${name}`,
);

/** Keeps a measurement that the caller has taken for another `forMs`, because it is still being made. */
export const keepMeasurement = autocommitStatement(
  (db, { name, forMs }: { name: MeasurementName; forMs: number }) =>
    db
      .updateTable('measurement')
      .set({ due_at: sql`clock_timestamp() + ${forMs} * interval '1 millisecond'` })
      .where('name', '=', name),
);

/** Stores a measurement. @param nextAt when it is due again; null leaves the time that taking it has set */
export async function recordMeasurement(
  orm: Orm,
  name: MeasurementName,
  result: unknown,
  nextAt: Date | null = null,
): Promise<void> {
  await record(orm, { name, result: JSON.stringify(result), nextAt: nextAt?.toISOString() ?? null });
}

const record = autocommitStatement(
  (_, { name, result, nextAt }: { name: MeasurementName; result: string; nextAt: string | null }) => sql`
  UPDATE measurement SET measured_at = clock_timestamp(), result = ${result}::jsonb,
    due_at = coalesce(${nextAt}::timestamptz, due_at)
  WHERE name = ${name}`,
);
