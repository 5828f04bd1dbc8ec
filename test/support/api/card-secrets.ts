import assert from 'node:assert/strict';
import type { TestStack } from '../stack.ts';
import { decodeBytes, tableContents } from './table-contents.ts';
import { workflowTexts } from './workflow-texts.ts';

/** What a reveal answered. */
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

/** Fails where a card that was revealed is in a row of any table, a log line, or a workflow. */
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
