import type { Answer } from '../../support/stack.ts';
import type { Merchant } from './controls.ts';

/** docs/partners/authorizations.md. */
export interface Authorization {
  id: string;
  /** The network's id of it; null in test mode. */
  networkId: string | null;
  status: 'pending' | 'declined' | 'closed' | 'reversed' | 'expired';
  amount: number;
  held: number;
  settled: number;
  reason: string | null;
  merchant: Merchant;
  requests: readonly Asking[];
  day: string;
}

interface Asking {
  type: 'authorization' | 'increment';
  amount: number;
  approved: boolean;
  decline_reason: string | null;
}

/** A clearing that overtook the request for its authorization. */
export interface Overtaking {
  networkId: string;
  transactionId: string;
  cents: number;
  final: boolean;
}

export function asking(type: Asking['type'], amount: number, reason: string | null): Asking {
  return { type, amount, approved: reason === null, decline_reason: reason };
}

/** The authorization once it holds this much. @param end its status if it holds nothing, and nothing was cleared */
export function holding(
  authorization: Authorization,
  held: number,
  end: 'reversed' | 'expired' | 'closed',
): Authorization {
  const ended = authorization.settled > 0 ? 'closed' : end;
  return { ...authorization, held, status: held > 0 ? 'pending' : ended };
}

type Shown = Omit<Authorization, 'networkId' | 'day'>;

export function shown(authorization: Authorization): Shown {
  const { id, status, amount, held, settled, reason, merchant, requests } = authorization;
  return { id, status, amount, held, settled, reason, merchant, requests };
}

export function shownBy(json: Answer['json']): Shown {
  return {
    id: json.id,
    status: json.status,
    amount: json.amount,
    held: json.held_amount,
    settled: json.settled_amount,
    reason: json.decline_reason,
    merchant: json.merchant,
    requests: json.requests.map(({ created, ...asked }: Answer['json']) => asked),
  };
}

export function inWords({ id, status, amount, held, settled }: Shown): string {
  return `${id} ${status} ${amount}/${held}/${settled}`;
}
