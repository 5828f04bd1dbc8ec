import pg from 'pg';

/** Connects, works, and leaves. A server that is killed meanwhile fails the work, and not this process. */
export async function withClient<T>(
  connection: string | pg.ClientConfig,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = new pg.Client(connection);
  // The statement under way fails by itself; without a listener this event would end the process.
  client.on('error', () => {});
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
