import type { Account } from '../account.ts';
import type { Tally } from '../tally.ts';
import type { Service } from './running-service.ts';

/** What one script's clients share. */
export interface Run {
  service: Service;
  accounts: Account[];
  /** Ticks at every question and every answer. */
  tick(): number;
  tally: Tally;
}
