import { until } from '../until.ts';
import type { TestCommands } from './open-commands.ts';

/** Waits until so many statements on the database of the commands wait for a lock. */
export const untilWaiting = ({ owner }: TestCommands, count = 1): Promise<boolean> =>
  until(`${count} wait for a lock`, async () => {
    const { rowCount } = await owner.query(
      `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    );
    return rowCount === count;
  });
