/** Something that needs an operator. `attention list` shows it; docs/operating.md says what to do about each kind. */
export interface AttentionItem {
  kind:
    | 'card_issuance'
    | 'card_topup'
    | 'card_status_change'
    | 'card_network_id'
    | 'request'
    | 'webhook'
    | 'deposit'
    | 'deposit_payment'
    | 'deposit_workflow'
    | 'chain_scan';
  /** Of what waits, or of its partner if several things share a line. */
  id: string;
  since: string;
  reason: string;
  /** What resolves it, or shows more. */
  command: string;
}
