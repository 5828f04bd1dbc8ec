import { CardNetworkUnavailable } from '../domain/card-network.ts';
import type { Verdict } from '../domain/decision.ts';

/** `settled`: over and, where nobody had answered yet, answered. `accepted`: the network works on it, answered 202. */
export type SettlementState = 'settled' | 'accepted';

/**
 * Asks the network about an operation and does what follows. Where it says nothing definite, what an operator has
 * recorded is carried out: the command may have died before it told the workflow.
 * @param steps.follow acts on a definite answer; false where it is none
 * @param steps.decide carries out what is recorded; null where nothing is
 * @throws CardNetworkUnavailable where the network gives no definite answer and nothing is recorded.
 */
export async function settleByAnswer<Answer>(steps: {
  ask(): Promise<Answer>;
  follow(answer: Answer): Promise<boolean>;
  accept(): Promise<void>;
  decide: ((network: 'away' | 'answers') => Promise<Verdict>) | null;
}): Promise<SettlementState> {
  const { ask, follow, accept, decide } = steps;
  let network: 'away' | 'answers' = 'answers';
  try {
    if (await follow(await ask())) return 'settled';
    await accept();
  } catch (error) {
    if (!(error instanceof CardNetworkUnavailable) || decide === null) throw error;
    network = 'away';
  }
  return (await decide?.(network))?.settled ? 'settled' : 'accepted';
}
