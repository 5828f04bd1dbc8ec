import type { Account } from '../account.ts';
import type { Tally } from '../tally.ts';
import type { Service } from './running-service.ts';

export interface Run {
  service: Service;
  accounts: Account[];
  /** The run's clock, which ticks at every question and every answer. */
  tick(): number;
  tally: Tally;
}
