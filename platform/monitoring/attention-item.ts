import type { Mode } from '../../domain/mode.ts';
import type { WorkerCheck } from './worker-check.ts';

export const ATTENTION_KINDS = [
  'card_issuance',
  'card_topup',
  'card_withdrawal',
  'card_status_change',
  'card_network_id',
  'network_contradiction',
  'request',
  'webhook',
  'webhook_endpoint',
  'deposit',
  'deposit_confirmation',
  'deposit_payment',
  'deposit_workflow',
  'chain_scan',
  'network_transaction',
  'network_inbox',
  'network_inbox_full',
  'network_difference',
  'network_setup',
  'network_reconciliation',
  'true_up',
  'default_partition',
  'adjustment',
  'server_log',
] as const;
export type AttentionKind = (typeof ATTENTION_KINDS)[number];

/**
 * Something that needs an operator. `attention list` shows it; docs/attention.md says what to do about each
 * kind.
 */
export interface AttentionItem {
  kind: AttentionKind;
  /** The id of the object that needs attention, or of its partner if several objects share a line. */
  id: string;
  /** When it began to need attention, in real time. */
  since: string;
  /** Null if it is of no account's data, such as a table's partitions. */
  mode: Mode | null;
  /** Whose it is; null if it is nobody's, such as the scan of a chain. */
  partner_id: string | null;
  reason: string;
  /** What to look for at the issuer, from {@link atIssuer}; left out if the item is about nothing there. */
  at_issuer?: string;
  /** The command that resolves it, or shows more. It can be copied as it is, except for a `"…"`. */
  command: string;
  /** The alternative command, if there is something to decide. */
  or_command: string | null;
  /** The workflow that is waiting; null if there is none. */
  workflow_id: string | null;
}

/**
 * An item whose reason goes on with what to check: whether a worker is running, or, if one is, why it has not
 * done its work.
 */
export interface UnfinishedItem extends AttentionItem {
  worker?: WorkerCheck;
}

/**
 * What to look for at the issuer. The token is our id, by which the issuer knows what we asked for; all other
 * ids are its own.
 * @param named what is not known is null, and is left out
 */
export function atIssuer({
  amountCents,
  amount,
  currency,
  ...ids
}: {
  amountCents?: string | null;
  /** As the issuer wrote it, in the currency's smallest unit. */
  amount?: number | null;
  currency?: string | null;
  token?: string | null;
  card?: string | null;
  payment?: string | null;
  element?: string | null;
}): string {
  const parts = Object.entries(ids).flatMap(([what, id]) => (id == null ? [] : [`${what} ${id}`]));
  const written = amount == null ? [] : [`${currency ?? 'unknown currency'} ${amount}`];
  const all = amountCents == null ? [...written, ...parts] : [`${amountCents} cents`, ...parts];
  return `at the issuer: ${all.join(', ')}`;
}

/** The two command lines of an operator's decision. */
export function decisionCommands(
  verb: string,
  [yes, no]: readonly [string, string],
  flags: string,
): Pick<AttentionItem, 'command' | 'or_command'> {
  const line = (outcome: string) => `npm run operator -- ${verb} ${outcome} ${flags}`;
  return { command: line(yes), or_command: line(no) };
}
