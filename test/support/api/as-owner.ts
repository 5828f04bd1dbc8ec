import pg from 'pg';
import { ownerUrlOf } from '../postgres.ts';
import type { TestStack } from '../stack.ts';

/** Runs one statement as the tables' owner, who may do what the service itself may not. */
export async function asOwner<Row extends pg.QueryResultRow>(
  stack: TestStack,
  text: string,
  values: unknown[] = [],
): Promise<Row[]> {
  const owner = new pg.Client(ownerUrlOf(stack.config.databaseUrl));
  await owner.connect();
  try {
    return (await owner.query<Row>(text, values)).rows;
  } finally {
    await owner.end();
  }
}
