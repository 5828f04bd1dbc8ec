import pg from 'pg';

interface BareTransactions {
  /** Runs `work` between BEGIN and COMMIT, or ROLLBACK if it fails. */
  run(work: (client: pg.PoolClient) => Promise<void>): Promise<void>;
  stop(): Promise<void>;
}

/** Transactions of only `pg`, as the service's role. */
export function createBareTransactions(databaseUrl: string, poolSize: number): BareTransactions {
  const pool = new pg.Pool({
    connectionString: databaseUrl,
    max: poolSize,
    options: '-c role=card_issuing_app',
  });
  // Ending the pool does not wait for its connections, and the server may stop before they are closed.
  pool.on('error', (error) => {
    if (!pool.ending) throw error;
  });
  return {
    async run(work) {
      const client = await pool.connect();
      try {
        await client.query('BEGIN');
        await work(client);
        await client.query('COMMIT');
      } catch (error) {
        await client.query('ROLLBACK');
        throw error;
      } finally {
        client.release();
      }
    },
    stop: () => pool.end(),
  };
}
