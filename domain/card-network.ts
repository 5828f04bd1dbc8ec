import { z } from 'zod';
import type { NetworkCard } from './card.ts';
import type { SettableStatus } from './card-status.ts';

/**
 * The card network that issues our cards. Each operation that acts has a token of ours and is idempotent by it: asking
 * again with the same token never acts twice and gives the state as it is by then. Every method throws
 * CardNetworkUnavailable if there is no definite answer: ask again with the same token, or look it up.
 */
export interface CardNetwork {
  issueCard(request: IssueCardRequest): Promise<IssueAnswer | OperationFailed>;
  lookUpIssuance(token: string): Promise<LookUpAnswer>;

  topUpCard(request: TopUpRequest): Promise<TopUpAnswer | OperationFailed>;
  lookUpTopUp(token: string): Promise<TopUpLookUpAnswer>;

  /** A token that was carried out is not carried out again, however late it comes and whatever came after it. */
  changeCardStatus(request: StatusChangeRequest): Promise<StatusChangeAnswer>;

  /** Only a reveal asks for this; the answer goes to the partner and nowhere else. */
  revealCard(card: RevealRequest): Promise<RevealedCard>;
}

export interface IssueCardRequest {
  /** Our card id. */
  token: string;
  productCode: string;
  bin: string;
  amountCents: number;
  /** The name to emboss; a network that needs none may drop it. */
  cardholderName: string | null;
}

export type IssueAnswer =
  | ({ status: 'issued' } & NetworkCard)
  /** Completes asynchronously: a callback may say when, looking it up always does. */
  | { status: 'accepted' }
  | { status: 'declined'; reason: string };

/** The network accepted an operation and then could not carry it out. */
export type OperationFailed = { status: 'failed'; reason: string };

/**
 * `unknown`: the network never took the token, so it issued nothing under it. If it is still working on the token, it may
 * have the card already, but the card is of no use until the network says that it is issued.
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

/** `unknown`: the network never took the token. */
export type TopUpLookUpAnswer = TopUpAnswer | OperationFailed | { status: 'unknown' };

export interface StatusChangeRequest {
  /** Our claim's id. */
  token: string;
  networkCardId: string;
  /** What the card is to be. */
  cardStatus: SettableStatus;
}

/** `refused`: the network's rules forbid it, as for a card that it has blocked itself. Nothing changed there. */
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

/** What the network calls back with: it says that something changed, never what. */
export const NetworkCallback = z.object({
  token: z.string().min(1).max(100),
  type: z.enum(['card.issuance', 'card.topup']),
});
export type NetworkCallback = z.infer<typeof NetworkCallback>;

/**
 * The network gave no definite answer: a timeout, a 5xx, a lost connection, an answer that can't be read. It may have
 * acted all the same, so this never means "no". The message contains neither bodies nor names.
 */
export class CardNetworkUnavailable extends Error {
  override readonly name = 'CardNetworkUnavailable';
}
