import { checkLedger, INVARIANT_NUMBERS, type Violation } from '../ledger/check-ledger.ts';
import type { Orm } from '../platform/db/orm.ts';
import { recordMeasurement } from '../platform/monitoring/measurements.ts';
import { BOOKS_INVARIANT, CLOSINGS_INVARIANT, COUNTERS_INVARIANT, checkBooks } from './check-books.ts';

/** The result of a check of the whole ledger. */
export interface LedgerCheck {
  completedAt: string;
  durationSeconds: number;
  /** By the number of the invariant; at most 100 of each are counted. */
  violations: Record<string, number>;
}

/**
 * Checks the whole ledger, also against the rows that its postings are for, and stores the result, which
 * every process then exports. If it fails, what was found until then is stored, if that is anything.
 * @param options.reader the database to read from, since the statements take long
 * @param options.nextAt when the next check is due; null leaves the time already set
 * @param options.beforeEach is called before each invariant's statement
 */
export async function checkAndRecord(
  orm: Orm,
  options: { reader: Orm; nextAt: Date | null; beforeEach?: () => Promise<void> },
): Promise<Violation[]> {
  const startedAt = performance.now();
  const em = options.reader.em.fork();
  const violations: Violation[] = [];
  const store = () => {
    const counts = [...INVARIANT_NUMBERS, BOOKS_INVARIANT, COUNTERS_INVARIANT, CLOSINGS_INVARIANT].map(
      (number) => [number, violations.filter(({ invariant }) => invariant === number).length],
    );
    const check: LedgerCheck = {
      completedAt: new Date().toISOString(),
      durationSeconds: (performance.now() - startedAt) / 1_000,
      violations: Object.fromEntries(counts),
    };
    return recordMeasurement(orm, 'ledger_check', check, options.nextAt);
  };
  try {
    await checkLedger(em, options.beforeEach, violations);
    await checkBooks(em, options.beforeEach, violations);
  } catch (error) {
    if (violations.length > 0) await store();
    throw error;
  }
  await store();
  return violations;
}
