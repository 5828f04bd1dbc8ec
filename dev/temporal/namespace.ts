import { setTimeout as delay } from 'node:timers/promises';
import { type Connection, isGrpcServiceError } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';

/** gRPC status codes. */
const INVALID_ARGUMENT = 3;
const NOT_FOUND = 5;
const ALREADY_EXISTS = 6;
const UNAVAILABLE = 14;

/** As long as idempotency keys are kept (decisions.md, "Rules"). */
const RETENTION = msToTs('30 days');

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

/** A namespace that a server made by itself can have a shorter retention than those we make. */
export async function setRetention(connection: Connection, namespace: string): Promise<void> {
  const { config } = await connection.workflowService.describeNamespace({ namespace });
  if (String(config?.workflowExecutionRetentionTtl?.seconds) === String(RETENTION.seconds)) return;
  await connection.workflowService.updateNamespace({
    namespace,
    config: { workflowExecutionRetentionTtl: RETENTION },
  });
}

async function createNamespace(connection: Connection, namespace: string): Promise<void> {
  try {
    await connection.workflowService.describeNamespace({ namespace });
    return;
  } catch (error) {
    if (!isGrpcServiceError(error) || error.code !== NOT_FOUND) throw error;
  }
  try {
    await connection.workflowService.registerNamespace({
      namespace,
      workflowExecutionRetentionPeriod: RETENTION,
    });
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

/** Numbers of temporal.api.enums.v1.IndexedValueType. */
const KEYWORD = 2;
const BOOL = 5;

/** What operators find workflows by (design/workflows.md). */
export const SEARCH_ATTRIBUTES: Readonly<Record<string, typeof KEYWORD | typeof BOOL>> = {
  PartnerId: KEYWORD,
  Mode: KEYWORD,
  CardId: KEYWORD,
  DepositId: KEYWORD,
  EventType: KEYWORD,
  DeliveryStatus: KEYWORD,
  NeedsAttention: BOOL,
};

/** Registers those the namespace lacks; fails where one is there with another type. */
async function registerSearchAttributes(connection: Connection, namespace: string): Promise<void> {
  const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace });
  const missing: Record<string, number> = {};
  for (const [name, type] of Object.entries(SEARCH_ATTRIBUTES)) {
    const found = customAttributes[name];
    if (found === undefined) missing[name] = type;
    else if (found !== type) {
      throw new Error(
        `namespace ${namespace} has a search attribute ${name} of another type (${found} instead of ${type}); ` +
          'remove it there, or use another namespace (TEMPORAL_NAMESPACE)',
      );
    }
  }
  if (Object.keys(missing).length === 0) return;
  await connection.operatorService.addSearchAttributes({ namespace, searchAttributes: missing });
}
