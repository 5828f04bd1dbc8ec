import type { Mode } from '../domain/mode.ts';
import type { LedgerAccount } from './operation.ts';

/** Key of `ledger.account`: `card/<cardId>`, or `<kind>/<mode>/<partnerId>`. */
export function accountId(account: LedgerAccount, partnerId: string, mode: Mode): string {
  return typeof account === 'string' ? `${account}/${mode}/${partnerId}` : `card/${account.cardId}`;
}
