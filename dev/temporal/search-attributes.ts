import type { Connection } from '@temporalio/client';

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
export async function registerSearchAttributes(connection: Connection, namespace: string): Promise<void> {
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
