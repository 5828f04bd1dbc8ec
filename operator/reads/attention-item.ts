/** Something that waits for a person, and the command that settles it. */
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
  id: string;
  since: string;
  reason: string;
  command: string;
}
