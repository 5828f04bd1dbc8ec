/**
 * The card network that issues our cards. Every operation that acts is named by a token of ours and is idempotent by it:
 * asking again with the same token never acts twice and gives the state as it then is. Each of these throws
 * CardNetworkUnavailable where there is no definite answer: ask again with the same token, or look it up.
 */
export interface CardNetwork {
  issueCard(request: IssueCardRequest): Promise<IssueAnswer | OperationFailed>;
  lookUpIssuance(token: string): Promise<LookUpAnswer>;

  topUpCard(request: TopUpRequest): Promise<TopUpAnswer | OperationFailed>;
  lookUpTopUp(token: string): Promise<TopUpAnswer | OperationFailed | { status: 'unknown' }>;

  /** A token that was carried out is not carried out again, however late it comes and whatever came after it. */
  changeCardStatus(request: StatusChangeRequest): Promise<StatusChangeAnswer>;

  /** Only a reveal asks for it; the answer goes to the partner and nowhere else. */
  revealCard(card: RevealRequest): Promise<RevealedCard>;
}

export interface IssueCardRequest {
  /** Our card id. */
  token: string;
  productCode: string;
  bin: string;
  amountCents: number;
  /** What is embossed; a network that needs none may drop it. */
  cardholderName: string | null;
}

/** What may be kept of a card. */
export interface NetworkCard {
  networkCardId: string;
  last4: string;
  expMonth: number;
  expYear: number;
}

export type IssueAnswer =
  | ({ status: 'issued' } & NetworkCard)
  /** Completes asynchronously: a callback may tell when, looking it up always does. */
  | { status: 'accepted' }
  | { status: 'declined'; reason: string };

/** An operation that was accepted first and then came to nothing. */
export type OperationFailed = { status: 'failed'; reason: string };

export interface TopUpRequest {
  /** Our top-up id. */
  token: string;
  networkCardId: string;
  amountCents: number;
}

export type TopUpAnswer =
  | { status: 'succeeded' }
  /** Completes asynchronously: a callback may tell when, looking it up always does. */
  | { status: 'accepted' }
  | { status: 'declined'; reason: string };

export interface StatusChangeRequest {
  /** Our claim's id. */
  token: string;
  networkCardId: string;
  /** What the card is to be. */
  cardStatus: 'active' | 'frozen' | 'blocked';
}

/** `refused`: the network's rules forbid it, as for a card it has blocked itself; nothing changed there. */
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

/**
 * `unknown`: the network never took the token, so nothing was issued under it. Of one it works on it may have the card
 * already, which is good for nothing before somebody says that it is issued.
 */
export type LookUpAnswer =
  | Exclude<IssueAnswer, { status: 'accepted' }>
  | { status: 'accepted'; card?: NetworkCard | undefined }
  | OperationFailed
  | { status: 'unknown' };

/**
 * The network gave no definite answer: a timeout, a 5xx, a lost connection, an answer that can't be read. It may have
 * acted all the same, so this never means "no". The message carries neither bodies nor names.
 */
export class CardNetworkUnavailable extends Error {
  override readonly name = 'CardNetworkUnavailable';
}
