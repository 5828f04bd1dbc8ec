import { setTimeout as delay } from 'node:timers/promises';
import { type Connection, isGrpcServiceError } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';
import { registerSearchAttributes, SEARCH_ATTRIBUTES } from './search-attributes.ts';

/** gRPC status codes. */
const INVALID_ARGUMENT = 3;
const NOT_FOUND = 5;
const ALREADY_EXISTS = 6;
const UNAVAILABLE = 14;

/**
 * Makes the namespace and the search attributes where they are missing, and returns once both can be used. It may be
 * called at every start, and by several processes at once.
 */
export async function registerNamespace(connection: Connection, namespace: string): Promise<void> {
  await createNamespace(connection, namespace);
  await eventually([NOT_FOUND, ALREADY_EXISTS, UNAVAILABLE], () =>
    registerSearchAttributes(connection, namespace),
  );
  // In backquotes, since `Mode` is a word of the query language.
  const query = Object.keys(SEARCH_ATTRIBUTES)
    .map((name) => `\`${name}\` IS NOT NULL`)
    .join(' OR ');
  await eventually([NOT_FOUND, INVALID_ARGUMENT, UNAVAILABLE], () =>
    connection.workflowService.countWorkflowExecutions({ namespace, query }),
  );
}

async function createNamespace(connection: Connection, namespace: string): Promise<void> {
  try {
    await connection.workflowService.describeNamespace({ namespace });
    return;
  } catch (error) {
    if (!isGrpcServiceError(error) || error.code !== NOT_FOUND) throw error;
  }
  try {
    const workflowExecutionRetentionPeriod = msToTs('30 days');
    await connection.workflowService.registerNamespace({ namespace, workflowExecutionRetentionPeriod });
  } catch (error) {
    if (!isGrpcServiceError(error) || error.code !== ALREADY_EXISTS) throw error;
  }
}

/** The server's parts learn of a change one after the other: these answers can mean that one has not yet. */
async function eventually(notYet: readonly number[], attempt: () => Promise<unknown>): Promise<void> {
  const giveUpAt = Date.now() + 30_000;
  for (;;) {
    try {
      await attempt();
      return;
    } catch (error) {
      if (!isGrpcServiceError(error) || !notYet.includes(error.code) || Date.now() > giveUpAt) throw error;
      await delay(100);
    }
  }
}
