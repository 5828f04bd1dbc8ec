import { asOwner } from './postgres.ts';
import type { TestStack } from './stack.ts';

/** The API's `GET /metrics`, with a new measurement of the whole database. */
export async function readMetrics(stack: TestStack): Promise<string> {
  await asOwner(
    stack,
    `UPDATE measurement SET due_at = '-infinity' WHERE name IN ('webhooks', 'deposits', 'attention')`,
  );
  const { host, port } = stack.config;
  return (await fetch(`http://${host}:${port}/metrics`)).text();
}
