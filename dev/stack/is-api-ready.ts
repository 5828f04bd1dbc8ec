/** Whether `GET /readyz` answers 200: PostgreSQL, migrations and Temporal all answer the API. */
export async function isApiReady(origin: string): Promise<boolean> {
  try {
    const response = await fetch(`${origin}/readyz`, { signal: AbortSignal.timeout(10_000) });
    await response.arrayBuffer();
    return response.status === 200;
  } catch (error) {
    // Nobody listens yet (TypeError), or it takes too long to say (DOMException).
    if (error instanceof TypeError || error instanceof DOMException) return false;
    throw error;
  }
}
