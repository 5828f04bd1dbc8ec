import assert from 'node:assert/strict';
import { asOwner } from './postgres.ts';
import type { TestStack } from './stack.ts';

/**
 * Every row of every table of ours as one JSON line each, by table: to see that nothing was written, or what was.
 * @param text only the rows that have this text
 */
export async function tableContents(stack: TestStack, text = ''): Promise<Record<string, string[]>> {
  const tables = await asOwner<{ name: string }>(
    stack,
    `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables
     WHERE schemaname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1`,
  );
  const selects = tables.map(
    ({ name }) =>
      `SELECT '${name}' AS name, row_to_json(t)::text AS line FROM ${name} t WHERE position($1 IN t::text) > 0`,
  );
  const rows = await asOwner<{ name: string; line: string }>(
    stack,
    `${selects.join(' UNION ALL ')} ORDER BY name, line`,
    [text],
  );
  const lines = Map.groupBy(rows, ({ name }) => name);
  return Object.fromEntries(
    tables.map(({ name }) => [name, (lines.get(name) ?? []).map(({ line }) => line)]),
  );
}

/**
 * {@link tableContents} without what an API writes by itself: which accounts are active in it, and the log of requests,
 * refused ones included.
 */
export async function lastingContents(stack: TestStack, text = ''): Promise<Record<string, string[]>> {
  const tables = Object.entries(await tableContents(stack, text));
  return Object.fromEntries(tables.filter(([name]) => !/^public\.(api_process|logged_request)/.test(name)));
}

/** The {@link lastingContents} that name an account, without when its keys were last used. */
export async function rowsNaming(stack: TestStack, partnerId: string): Promise<Record<string, string[]>> {
  return Object.fromEntries(
    Object.entries(await lastingContents(stack, partnerId)).map(([name, lines]) => [
      name,
      lines.map((line) => line.replace(/"last_used_at":[^,}]+/, '')),
    ]),
  );
}

/** A row of {@link tableContents} with what is bytea, which comes as hex, read as text. */
export function decodeBytes(row: string): string {
  return row.replace(/\\\\x([0-9a-f]+)/g, (_, hex) => Buffer.from(hex, 'hex').toString('latin1'));
}

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

export interface Revealed {
  pan: string;
  cvv: string;
}

/**
 * What of these cards a text gives away: the number, whole, in groups, as hex or without its last four; the CVV as a
 * value of its own (three digits are bound to stand somewhere), or anything that is called one.
 */
export function secretsIn(text: string, revealed: readonly Revealed[]): string[] {
  const bare = text.replaceAll(/(?<=[0-9])[ -](?=[0-9])/g, '');
  return [
    ...revealed.flatMap(({ pan, cvv }) => [
      ...[pan.slice(0, -4), Buffer.from(pan).toString('hex')].filter((form) => bare.includes(form)),
      ...[`"${cvv}"`, `'${cvv}'`].filter((form) => text.includes(form)),
    ]),
    ...(text.match(/\b(cvv|cvc|pan)\b["']?\s*[:=]/i) ?? []),
  ];
}

/** Fails if a revealed card is in a row of any table, a log line or a workflow. */
export async function assertKeptNowhere(stack: TestStack, revealed: readonly Revealed[]): Promise<void> {
  assert.ok(revealed.length > 0, 'nothing was revealed');
  const none = (text: string, where: string) =>
    assert.deepEqual(secretsIn(text, revealed), [], `${where}: ${text.slice(0, 500)}`);
  for (const [table, rows] of Object.entries(await tableContents(stack))) {
    for (const row of rows) none(decodeBytes(row), table);
  }
  for (const line of stack.logLines) none(line, 'a log line');
  for (const [workflowId, text] of await workflowTexts(stack)) none(text, workflowId);
}
