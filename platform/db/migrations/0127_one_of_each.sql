-- Up Migration

-- What a sandbox clock makes due begins in any order, so nobody asks which clocks were advanced last.
-- squawk-ignore require-concurrent-index-deletion -- Few rows are ever written to the table, and nothing reads by this index.
DROP INDEX IF EXISTS test_clock_advance_latest;
