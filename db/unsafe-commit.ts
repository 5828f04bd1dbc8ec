/**
 * A CTE that lets the statement's own transaction commit without waiting for the disk; the statement has to read from
 * it. Only for what a crash of PostgreSQL may forget: a lease, the record of an attempt that is then made again, a claim
 * that nothing was done under yet. What commits later in the usual way takes it to the disk along with itself.
 */
export const UNSAFE_COMMIT =
  "unsafe_commit AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))";
