-- Up Migration

-- What a sandbox clock makes due begins in any order, so nobody asks which clocks were advanced last.
-- squawk-ignore require-concurrent-index-deletion -- Few rows are ever written to the table, and nothing reads by this index.
DROP INDEX IF EXISTS test_clock_advance_latest;

-- All queues have the same columns (platform/db/leased-queue.ts).
-- squawk-ignore renaming-column -- Nothing has been released.
ALTER TABLE late_answer RENAME look_ups TO attempts;
-- squawk-ignore renaming-column -- Nothing has been released.
ALTER TABLE late_answer RENAME look_up_after TO retry_after;
