/** An operator's decision about an operation that the network never gave an outcome for. */
export interface Decision<Outcome extends string = string> {
  outcome: Outcome;
  /** The network's id of a card that the operator says was issued, if the network can't be asked for it. */
  networkCardId?: string;
}

export type IssuanceDecision = Decision<'issued' | 'failed'>;
export type TransferDecision = Decision<'succeeded' | 'failed'>;

/** Why a decision was not carried out, or not yet. These codes go into workflow histories. */
export type WhyNot =
  | 'too_early'
  | 'contradicts_the_record'
  | 'network_away'
  | 'unknown_to_network'
  | 'other_id_at_network'
  | 'id_of_another_card'
  | 'not_recordable';

/** As it is stored in the operation's row. One that was `refused` is not binding. */
export type RecordedDecision = Decision & { refused?: WhyNot };

/**
 * The result of a decision. `over`: whether the operation has ended, because of the decision or otherwise.
 */
export type Verdict = { over: true } | { over: false; because: WhyNot };

/** Why what the network said about an operation could not be recorded. */
export interface NotRecorded {
  /** An error without any row's values. */
  reason: string;
  /** The network's id of the card, if the network has issued one. */
  networkCardId?: string;
  /** When that happened first, as ISO 8601. */
  at: string;
}
