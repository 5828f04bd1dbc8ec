import { z } from 'zod';
import type { NetworkCard } from './card.ts';
import type { SettableStatus } from './card-status.ts';

/**
 * The card network that issues our cards. Each operation that acts has a token of ours as its idempotency key: asking
 * again with the same token never acts twice, and returns the operation's current state. Every method throws
 * CardNetworkUnavailable if there is no definite answer: ask again with the same token, or look the operation up.
 */
export interface CardNetwork {
  issueCard(request: IssueCardRequest): Promise<IssueAnswer | OperationFailed>;
  lookUpIssuance(token: string): Promise<LookUpAnswer>;

  topUpCard(request: TopUpRequest): Promise<TopUpAnswer | OperationFailed>;
  lookUpTopUp(token: string): Promise<TopUpLookUpAnswer>;

  /** A token that was applied is never applied again, however late it arrives and whatever came after it. */
  changeCardStatus(request: StatusChangeRequest): Promise<StatusChangeAnswer>;

  /** For reveals only: the result goes to the partner and nowhere else. */
  revealCard(card: RevealRequest): Promise<RevealedCard>;
}

export interface IssueCardRequest {
  /** Our card id. */
  token: string;
  productCode: string;
  bin: string;
  amountCents: number;
  /** The name to emboss; a network that needs none may ignore it. */
  cardholderName: string | null;
}

type IssueAnswer =
  | ({ status: 'issued' } & NetworkCard)
  /** Completes asynchronously: a callback may say when, looking it up always does. */
  | { status: 'accepted' }
  | { status: 'declined'; reason: string };

/** The network accepted an operation and then could not carry it out. */
export type OperationFailed = { status: 'failed'; reason: string };

/**
 * `unknown`: the network never accepted the token, so it issued nothing for it. `accepted`: the network may already have
 * created the card, but the card can't be used until the network says that it is issued.
 */
export type LookUpAnswer =
  | Exclude<IssueAnswer, { status: 'accepted' }>
  | { status: 'accepted'; card?: NetworkCard | undefined }
  | OperationFailed
  | { status: 'unknown' };

export interface TopUpRequest {
  /** Our top-up id. */
  token: string;
  networkCardId: string;
  amountCents: number;
}

export type TopUpAnswer =
  | { status: 'succeeded' }
  /** Completes asynchronously: a callback may say when, looking it up always does. */
  | { status: 'accepted' }
  | { status: 'declined'; reason: string };

/** `unknown`: the network never accepted the token. */
export type TopUpLookUpAnswer = TopUpAnswer | OperationFailed | { status: 'unknown' };

export interface StatusChangeRequest {
  /** Our claim's id. */
  token: string;
  networkCardId: string;
  /** The status to set. */
  cardStatus: SettableStatus;
}

/** `refused`: the network's rules forbid it, for example because it blocked the card itself. Nothing changed there. */
export type StatusChangeAnswer = { status: 'applied' } | { status: 'refused'; reason: string };

export interface RevealRequest {
  /** Our card id. */
  cardId: string;
  networkCardId: string;
}

/** Secret: never stored, logged, traced or put into an error or a history. */
export interface RevealedCard {
  pan: string;
  cvv: string;
  expMonth: number;
  expYear: number;
}

/** The body of a callback: it says that something changed, never what. */
export const NetworkCallback = z.object({
  token: z.string().min(1).max(100),
  type: z.enum(['card.issuance', 'card.topup']),
});
export type NetworkCallback = z.infer<typeof NetworkCallback>;

/**
 * The network gave no definite answer: a timeout, a 5xx, a lost connection, or a response that can't be parsed. It may have
 * acted all the same, so this never means "no". The message contains neither bodies nor names.
 */
export class CardNetworkUnavailable extends Error {
  override readonly name = 'CardNetworkUnavailable';
}
