/**
 * The card network that issues our cards. Every operation that acts is named by a token of ours (for an issuance the
 * card's id) and asked for by one call and looked up by another; top-ups, status changes and details join as further
 * pairs of the same shape.
 */
export interface CardNetwork {
  /**
   * Idempotent by token: asking again with the same token never issues twice and gives the state as it then is.
   * @throws CardNetworkUnavailable where there is no definite answer: ask again with the same token, or look it up.
   */
  issueCard(request: IssueCardRequest): Promise<IssueAnswer | IssuanceFailed>;

  /** @throws CardNetworkUnavailable where there is no definite answer. */
  lookUpIssuance(token: string): Promise<LookUpAnswer>;
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

export type IssueAnswer =
  | { status: 'issued'; networkCardId: string; last4: string; expMonth: number; expYear: number }
  /** Completes asynchronously: a callback may tell when, looking it up always does. */
  | { status: 'accepted' }
  | { status: 'declined'; reason: string };

/** An issuance that was accepted first and then came to nothing. */
export type IssuanceFailed = { status: 'failed'; reason: string };

/** `unknown`: the network never took the token, so nothing was issued under it. */
export type LookUpAnswer = IssueAnswer | IssuanceFailed | { status: 'unknown' };

/**
 * The network gave no definite answer: a timeout, a 5xx, a lost connection, an answer that can't be read. It may have
 * acted all the same, so this never means "no". The message carries neither bodies nor names.
 */
export class CardNetworkUnavailable extends Error {
  override readonly name = 'CardNetworkUnavailable';
}
