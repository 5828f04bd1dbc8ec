/** What somebody decides about an operation whose network stays silent. */
export interface Decision<Outcome extends string = string> {
  outcome: Outcome;
  /** The network's id of a card that is taken for issued, where the network can't be asked for it. */
  networkCardId?: string;
}

export type IssuanceDecision = Decision<'issued' | 'failed'>;
export type TopUpDecision = Decision<'succeeded' | 'failed'>;

/** Why a decision is not carried out, as yet. Codes: they go into workflows' histories. */
export type WhyNot =
  | 'too_early'
  | 'contradicts_the_record'
  | 'network_away'
  | 'unknown_to_network'
  | 'other_id_at_network'
  | 'id_of_another_card';

/** What became of a decision. `over`: the operation is, by it or otherwise. */
export type Verdict = { over: true } | { over: false; because: WhyNot };
