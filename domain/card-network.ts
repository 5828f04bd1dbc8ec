import type { DeclineReason } from './authorization.ts';
import type { NetworkCard } from './card.ts';
import type { SettableStatus } from './card-status.ts';
import type { NetworkAuthorizationRequest, ReportedTransaction } from './network-transaction.ts';

/**
 * The card network that issues our cards. Each operation that acts has a token of ours as its idempotency key: asking
 * again with the same token never acts twice, and returns the operation's current state. Every method throws
 * CardNetworkUnavailable if there is no definite answer: ask again with the same token, or look the operation up.
 */
export interface CardNetwork {
  issueCard(request: IssueCardRequest): Promise<IssueAnswer | OperationFailed>;
  lookUpIssuance(token: string): Promise<LookUpAnswer>;

  topUpCard(request: TopUpAsked): Promise<TopUpAnswer | OperationFailed>;
  lookUpTopUp(token: string): Promise<TopUpLookUpAnswer>;

  withdrawFromCard(request: WithdrawalAsked): Promise<WithdrawalAnswer | OperationFailed>;
  lookUpWithdrawal(token: string): Promise<WithdrawalLookUpAnswer>;

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

export interface TopUpAsked {
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

export interface WithdrawalAsked {
  /** Our withdrawal id. */
  token: string;
  networkCardId: string;
  amountCents: number;
}

export type WithdrawalAnswer =
  | { status: 'succeeded' }
  /** Completes asynchronously: a callback may say when, looking it up always does. */
  | { status: 'accepted' }
  | { status: 'declined'; reason: string };

/** `unknown`: the network never accepted the token. */
export type WithdrawalLookUpAnswer = WithdrawalAnswer | OperationFailed | { status: 'unknown' };

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

/** A path on which the network posts to us, outside /v1. Its network's adapter verifies, translates and answers what arrives. */
export interface IngressRoute {
  /** Below /network. */
  path: string;
  /** The header that has the signature, to name it if it does not match. */
  signatureHeader: string;
  /** Whether the network sent these bytes. Nothing else is done with a post that fails this. */
  verify(post: NetworkPost): boolean;
  /**
   * What the post says, in our words; empty if nothing in it concerns us.
   * @throws ApiError `validation_failed` if it can't be read
   */
  translate(post: NetworkPost): NetworkMessage[] | Promise<NetworkMessage[]>;
  /** The response, in the network's words. @param results what became of each message, in their order */
  respond(results: readonly MessageResult[]): { status: number; body: object | null };
}

/** A request of the network, as it arrived. */
export interface NetworkPost {
  body: Uint8Array;
  /** By their lowercase names. */
  headers: Readonly<Record<string, string | string[] | undefined>>;
}

export type NetworkMessage = OutcomeMessage | TransactionMessage | RequestMessage;

/** An issuance, a top-up or a withdrawal may have an outcome. It is only a hint: the network has to be asked. */
export interface OutcomeMessage {
  type: 'outcome';
  subject: 'card' | 'topup' | 'withdrawal';
  /** The id of the card, the top-up or the withdrawal. */
  token: string;
}

/** The network asks whether a card pays. It waits for the decision, for 2 s at most. */
export interface RequestMessage {
  type: 'request';
  request: NetworkAuthorizationRequest;
}

/** The network settled a transaction, or reports what became of an authorization. */
export interface TransactionMessage {
  type: 'transaction';
  /** JSON that `readReport` understands. It is kept if the transaction can't be booked now. */
  body: Uint8Array;
  transaction: ReportedTransaction;
}

/**
 * `noted`: there is nothing to say about it. `decided`: a request was approved or declined. `kept`: it can't be booked now, and
 * does not have to be sent again.
 */
export type MessageResult =
  | { status: 'noted' }
  | { status: 'booked'; transactionId: string }
  | { status: 'applied'; authorizationId: string }
  | { status: 'decided'; declineReason: DeclineReason | null; authorizationId: string | null }
  | { status: 'kept'; messageId: string };

/**
 * The network gave no definite answer: a timeout, a 5xx, a lost connection, or a response that can't be parsed. It may have
 * acted anyway, so this never means "no". The message contains neither bodies nor names.
 */
export class CardNetworkUnavailable extends Error {
  override readonly name = 'CardNetworkUnavailable';
}
