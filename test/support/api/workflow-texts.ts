import type { TestStack } from '../stack.ts';

/**
 * Everything readable in the stack's workflows by their ids: their histories, memos, search attributes and details. A
 * workflow that has just started may not be listed yet.
 */
export async function workflowTexts({ client, config }: TestStack): Promise<Map<string, string>> {
  const texts = new Map<string, string>();
  const query = `TaskQueue STARTS_WITH '${config.taskQueuePrefix}'`;
  for await (const workflow of client.workflow.list({ query })) {
    const handle = client.workflow.getHandle(workflow.workflowId, workflow.runId);
    const [history, description] = [await handle.fetchHistory(), await handle.describe()];
    texts.set(workflow.workflowId, textOf([history, description.raw]));
  }
  return texts;
}

/** Everything readable in a protobuf message: its strings, and its bytes as text. */
function textOf(value: unknown): string {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('utf8');
  if (typeof value === 'string') return value;
  if (typeof value !== 'object' || value === null) return '';
  return Object.entries(value)
    .map(([name, inner]) => `${name} ${textOf(inner)}`)
    .join('\n');
}
