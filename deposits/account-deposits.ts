import type { Tenant } from '../domain/mode.ts';

// What the worker does with deposits, it does for one account at a time, and accounts take turns (serve-accounts-jobs.ts).

/** Some deposits of an account for which something is due. */
export interface AccountDeposits extends Tenant {
  depositIds: string[];
}

/** Which accounts to find. */
export interface AccountsWanted {
  /** The account to start after; null to start with the first. */
  after: Tenant | null;
  /** Accounts to skip. */
  except: readonly Tenant[];
  /** How many accounts. */
  limit: number;
}

/** Deposits of an account in one transaction. */
export const MAX_AT_ONCE = 100;

/** An account as one text, as statements compare it. */
export const accountOf = ({ partnerId, mode }: Tenant): string => `${partnerId}/${mode}`;
