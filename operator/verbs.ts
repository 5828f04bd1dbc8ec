import type { Answer } from './answer.ts';
import type { Session } from './session.ts';

/** What nouns get to build their verbs with. */
export interface Verbs {
  session: Session;
  /** An action of commander's from what a verb does: its answer is printed, in the form that was asked for. */
  verb<A extends unknown[]>(work: (...args: A) => Promise<Answer>): (...args: A) => Promise<void>;
  /** Help text: complete command lines. */
  examples(...lines: string[]): string;
  err(text: string): void;
  /** Asks the person at the terminal; null where there is nobody to ask. */
  confirm(question: string): Promise<boolean | null>;
  resolveWaitMs: number;
}
