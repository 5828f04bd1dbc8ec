import pg from 'pg';

/**
 * Connects, does the work and disconnects. If the server is killed meanwhile, the work fails, but not this
 * process.
 */
export async function withClient<T>(
  connection: string | pg.ClientConfig,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = new pg.Client(connection);
  // The running statement fails by itself. Without a listener, this event would end the process.
  client.on('error', () => {});
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
