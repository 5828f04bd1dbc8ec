import type { ApiError } from '../domain/api-error.ts';
import type { DeclineReason } from '../domain/authorization.ts';
import type { NetworkCard } from '../domain/card.ts';
import type { SettableStatus } from '../domain/card-status.ts';
import type { Asked, PaymentSnapshot } from '../domain/payment.ts';
import type { NetworkReport, NetworkRequest } from '../domain/simulated-network.ts';
import type { TransferDirection } from '../domain/transfer.ts';

/**
 * The card network that issues our cards. Each operation that acts has a token of ours as its idempotency
 * key: asking again with the same token never acts twice, and returns the operation's current state. Every
 * method throws CardNetworkUnavailable if there is no definite answer: ask again with the same token, or look
 * the operation up. A network that forgets tokens is not asked to act under one that is older than
 * NETWORK_KEY_LIFETIME (docs/decisions/card-networks.md).
 */
export interface CardNetwork {
  readonly abilities: NetworkAbilities;

  issueCard(request: IssueCardRequest): Promise<IssueAnswer | OperationFailed>;
  lookUpIssuance(token: string): Promise<LookUpAnswer>;

  /** Moves a partner's money to a card, or back from it. */
  transfer(request: TransferAsked): Promise<TransferAnswer | OperationFailed>;
  lookUpTransfer(transfer: Pick<TransferAsked, 'direction' | 'token'>): Promise<TransferLookUpAnswer>;

  /** A token that was applied is never applied again, however late it arrives and whatever came after it. */
  changeCardStatus(request: StatusChangeRequest): Promise<StatusChangeAnswer>;

  /** For reveals only: the result goes to the partner and nowhere else. */
  revealCard(card: RevealRequest): Promise<RevealedCard>;

  /**
   * Moves money between a card's account and ours, so that the card's has what our ledger says: what a
   * blocked card still has comes back once it is free in our ledger, and what the prepaid balance has paid
   * for a card, whatever its status, goes there. Asking again with the same token never acts twice. Under a
   * token that is too old to be sent it only looks: if nothing was moved, that is a refusal (`key_expired`).
   * A network that holds no cards' money answers `succeeded` without a request.
   */
  trueUp(request: TrueUpAsked): Promise<TrueUpAnswer>;

  /** A payment as it is now; null if the network has none under this id. */
  readPayment(
    paymentId: string,
    turn: 'event' | 'reconciliation',
  ): Promise<PaymentSnapshot | UnreadableObject | null>;
  /** The payment in a state that the network has sent ({@link NamedObject}); null if it has to be read. */
  snapshotOf(state: Uint8Array): PaymentSnapshot | null;
  /** What a transfer between accounts was for; null if it is none of our operations. */
  readTransfer(transferId: string): Promise<OutcomeMessage | null>;

  /** What the network itself has recorded since then, oldest first, for the reconciliation. */
  listCards(since: Date): AsyncIterable<ListedCard | UnreadableObject>;
  listMovements(since: Date): AsyncIterable<ListedMovement | UnreadableObject>;
  listPayments(since: Date): AsyncIterable<PaymentSnapshot | UnreadableObject>;
  /** What the network has under one id, for the reconciliation; null if it has no such card. */
  readCard(networkCardId: string): Promise<ListedCard | UnreadableObject | null>;

  /** What is wrong with how the network is set up, for a person to mend; empty if nothing is. */
  checkSetUp(): Promise<string[]>;
}

/** What a network can do, beyond what each one has to. */
export interface NetworkAbilities {
  /**
   * Who has the money that is on cards. `network`: each card has an account there, and top-ups and
   * withdrawals are transfers.
   * `ledger`: only our ledger knows it, so that they succeed without a request.
   */
  moneyHeldBy: 'network' | 'ledger';
  /** Whether it asks us before it approves, so that spending controls and our ledger decide. */
  asksBeforeApproving: boolean;
}

/** What the network has and this release can't read. */
export interface UnreadableObject {
  /** The network's id of it. */
  networkId: string;
  /** Our id, if that much can be read. */
  token: string | null;
  /** The names of the fields that are not as expected, at most ten. */
  unreadable: string[];
}

export const isReadable = <Listed extends object>(one: Listed | UnreadableObject): one is Listed =>
  !('networkId' in one);

/** A card as the network lists it. */
export interface ListedCard {
  networkCardId: string;
  /** Our card id, if the network's record names one. */
  token: string | null;
  status: SettableStatus;
}

/** A movement of money between our funding account and a card's, as the network lists it. */
export interface ListedMovement {
  networkMovementId: string;
  kind: 'issuance' | TransferDirection | 'true_up';
  /** The id that its idempotency key was derived from; null if we did not ask for it. */
  token: string | null;
  amountCents: number;
  status: 'succeeded' | 'accepted' | 'failed';
}

export interface IssueCardRequest {
  /** Our card id. */
  token: string;
  productCode: string;
  bin: string;
  amountCents: number;
  /** The name to emboss; a network that needs none may ignore it. */
  cardholderName: string | null;
  /** The network's own reference of the product, such as a card program; null if the product has none. */
  issuerProduct?: string | null;
}

type IssueAnswer =
  | ({ status: 'issued' } & NetworkCard)
  /** Completes asynchronously: a callback may say when, looking it up always does. */
  | { status: 'accepted' }
  | { status: 'declined'; reason: string };

/** The network accepted an operation and then could not carry it out. */
export type OperationFailed = { status: 'failed'; reason: string };

/**
 * `unknown`: the network never accepted the token, so it issued nothing for it. `accepted`: the network may
 * already have created the card, but the card can't be used until the network says that it is issued.
 */
export type LookUpAnswer =
  | Exclude<IssueAnswer, { status: 'accepted' }>
  | { status: 'accepted'; card?: NetworkCard | undefined }
  | OperationFailed
  | { status: 'unknown' };

export interface TransferAsked {
  /** Our id of the top-up or the withdrawal. */
  token: string;
  direction: TransferDirection;
  networkCardId: string;
  amountCents: number;
}

type TransferAnswer =
  | { status: 'succeeded' }
  /** Completes asynchronously: a callback may say when, looking it up always does. */
  | { status: 'accepted' }
  | { status: 'declined'; reason: string };

/** `unknown`: the network never accepted the token. */
export type TransferLookUpAnswer = TransferAnswer | OperationFailed | { status: 'unknown' };

export type TrueUpDirection = 'from_card' | 'to_card';

export interface TrueUpAsked {
  /** Our id of the true-up, or what an operator had it asked again with. */
  token: string;
  direction: TrueUpDirection;
  networkCardId: string;
  amountCents: number;
}

export type TrueUpAnswer =
  | { status: 'succeeded' }
  | { status: 'accepted' }
  /**
   * The network said no and moved nothing. Asked again with the same token, it may do it, such as once it
   * holds the money no more.
   */
  | { status: 'not_yet'; reason: string }
  /** It will not do it under this token. */
  | { status: 'refused'; reason: string };

export interface StatusChangeRequest {
  /** Our claim's id. */
  token: string;
  networkCardId: string;
  /** The status to set. */
  cardStatus: SettableStatus;
}

/**
 * `refused`: the network's rules forbid it, for example because it blocked the card itself. Nothing changed
 * there.
 */
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
 * A path on which the network posts to us, outside /v1. Its network's adapter verifies, reads and answers
 * what arrives.
 */
export interface IngressRoute {
  /** With /network in front. */
  path: string;
  /** The header that has the signature, to name it if it does not match. */
  signatureHeader: string;
  /** Whether the network sent these bytes, and just now. Nothing else is done with a post that fails this. */
  verify(post: NetworkPost): boolean;
  /** @throws ApiError `validation_failed` if it can't be read */
  read(post: NetworkPost): ReceivedPost | Promise<ReceivedPost>;
}

export type ReceivedPost = PostForNow | PostForLater;

/** It is answered once its messages are handled. */
export interface PostForNow {
  handling: 'now';
  /** Empty if nothing in it concerns us. */
  messages: NetworkMessage[];
  /** The response, in the network's words. @param results what became of each message, in their order */
  respond(results: readonly MessageResult[]): NetworkResponse | Promise<NetworkResponse>;
}

/** It is noted, answered at once, and looked at from there, so that it is never lost. */
export interface PostForLater {
  handling: 'later';
  object: NamedObject;
  response: NetworkResponse;
}

/** Something that has changed at the network. */
export interface NamedObject {
  kind: 'payment' | 'transfer';
  /** The network's id. */
  id: string;
  /** The network's id of its card; null if the message does not say. */
  networkCardId: string | null;
  /**
   * All of it, if the message has that: JSON that `snapshotOf` understands, with nothing secret in it, and how
   * new it is, compared part by part.
   */
  state: { body: Uint8Array; version: readonly number[] } | null;
}

export interface NetworkResponse {
  status: number;
  body: object | null;
}

/** A request of the network, as it arrived. */
export interface NetworkPost {
  body: Uint8Array;
  /** By their lowercase names. */
  headers: Readonly<Record<string, string | string[] | undefined>>;
}

export type NetworkMessage = OutcomeMessage | RequestMessage | SimulatedRequest | SimulatedReport;

/** An issuance or a transfer may have an outcome. It is only a hint: the network has to be asked. */
export interface OutcomeMessage {
  type: 'outcome';
  subject: 'card' | TransferDirection;
  /** The id of the card or the transfer. */
  token: string;
}

/** The network asks whether a card pays. It waits for the decision, for 2 s at most. */
export interface RequestMessage extends Asked {
  type: 'request';
  networkCardId: string;
  /** The network's id of the payment. */
  paymentId: string;
}

/** The simulated network asks whether a card pays. */
export interface SimulatedRequest {
  type: 'simulated request';
  said: NetworkRequest;
}

/** The simulated network has settled a transaction, or reports what became of an authorization. */
export interface SimulatedReport {
  type: 'simulated report';
  said: NetworkReport;
}

/**
 * `noted`: there is nothing to say about it. `decided`: a request was approved or declined. `undecided`: it
 * can't be decided, such as one on an unknown card. `kept`: it can't be booked now, and does not have to be
 * sent again.
 */
export type MessageResult =
  | { status: 'noted' }
  | { status: 'booked'; transactionId: string }
  | { status: 'applied'; authorizationId: string }
  | { status: 'decided'; declineReason: DeclineReason | null; authorizationId: string | null }
  | { status: 'undecided'; error: ApiError }
  | { status: 'kept'; messageId: string };

/**
 * The network gave no definite answer: a timeout, a 5xx, a lost connection, or a response that can't be
 * parsed. It may have acted anyway, so this never means "no". The message contains neither bodies nor names.
 */
export class CardNetworkUnavailable extends Error {
  override readonly name = 'CardNetworkUnavailable';
}

/** Nothing was sent, because the request's turn in the network's rate did not come in time. */
export class TurnMissed extends CardNetworkUnavailable {
  constructor(options?: ErrorOptions) {
    const message =
      'card network: nothing was sent, because its turn did not come in time; ask again with the same token';
    super(message, options);
  }
}
