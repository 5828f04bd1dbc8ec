import { sql } from 'kysely';
import { ApiError } from '../../domain/api-error.ts';
import type { CardStatus } from '../../domain/card-status.ts';
import type {
  NetworkAuthorizationReport,
  NetworkAuthorizationRequest,
  NetworkTransaction,
  WhyKept,
} from '../../domain/network-transaction.ts';
import type { Settlement } from '../../payments/decide-settlements.ts';
import type { AuthorizationMessage } from '../../payments/message-record.ts';
import { AuthorizationUnknown } from '../../payments/take-message.ts';
import { type Reader, readStatement } from '../../platform/db/sql.ts';

// What the network reports about a live card, as the commands for it take it.

/** A live card, as far as a transaction on it needs to know. */
export interface NetworkCardOwner {
  cardId: string;
  partnerId: string;
  mode: 'live';
  status: CardStatus;
}

/** Our card with this id at the live network, and its account. */
export async function findNetworkCard(em: Reader, networkCardId: string): Promise<NetworkCardOwner | null> {
  const [row] = await liveCardWith(em, { networkCardId });
  return row === undefined ? null : toOwner(row);
}

export type FoundCard = { id: string; partner_id: string; status: CardStatus };

export const toOwner = ({ id, partner_id, status }: FoundCard): NetworkCardOwner => ({
  cardId: id,
  partnerId: partner_id,
  mode: 'live',
  status,
});

const liveCardWith = readStatement(
  (db, { networkCardId }: { networkCardId: string }) =>
    db
      .selectFrom('card')
      .select(['id', 'partner_id', 'status'])
      .where('network_card_id', '=', networkCardId)
      // A literal, so that the planner can use the partial index.
      .where('mode', '=', sql.lit<'live'>('live')),
  { acrossTenants: 'network' },
);

export const isAuthorizationReport = (
  reported: NetworkTransaction | NetworkAuthorizationReport,
): reported is NetworkAuthorizationReport => 'final' in reported;

/**
 * Whether a message's merchant is as it was, whenever it is told. Issuers tell the merchant as they know it
 * by then.
 */
const isMerchantFixed = (network: string): boolean => network === 'simulated';

/** What the network says about an authorization of a live card. @param network CARD_NETWORK */
export function toAuthorizationMessage(
  { cardId, partnerId, mode }: Omit<NetworkCardOwner, 'status'>,
  reported: NetworkAuthorizationReport | NetworkAuthorizationRequest,
  network: string,
): AuthorizationMessage {
  const { name, city, country, categoryCode } = reported.merchant;
  const isRequest = reported.type === 'authorization' || reported.type === 'increment';
  return {
    partnerId,
    mode,
    cardId,
    networkCardId: reported.networkCardId,
    type: reported.type,
    messageId: reported.networkTransactionId,
    // A new authorization is named after its request, unless the network gives it a name of its own.
    networkAuthorizationId:
      reported.networkAuthorizationId ?? (isRequest ? reported.networkTransactionId : null),
    amountCents: reported.amountCents,
    isFinal: 'final' in reported ? reported.final : true,
    expiresAt: 'final' in reported ? reported.expiresAt : null,
    place: 'final' in reported ? (reported.approvalNumber ?? reported.requestNumber) : null,
    networkPaymentId: 'final' in reported ? reported.networkPaymentId : null,
    merchant: { name, city, country, category_code: categoryCode },
    merchantMayChange: !isMerchantFixed(network),
  };
}

/** The settlement of a transaction that the network reports on a live card. @param network CARD_NETWORK */
export function toSettlement(
  card: Omit<NetworkCardOwner, 'status'>,
  reported: NetworkTransaction,
  network: string,
): Settlement {
  const { cardId, partnerId, mode } = card;
  const { name, city, country, categoryCode } = reported.merchant;
  return {
    partnerId,
    mode,
    cardId,
    networkTransactionId: reported.networkTransactionId,
    networkPaymentId: reported.networkPaymentId,
    type: reported.type,
    amountCents: reported.amountCents,
    forced: reported.forced,
    simulated: false,
    merchant: { name, city, country, category_code: categoryCode },
    merchantMayChange: !isMerchantFixed(network),
  };
}

/** Why a settlement was refused. @throws the error, if it is no refusal */
export function whyKept(error: unknown, card: NetworkCardOwner): WhyKept {
  if (error instanceof AuthorizationUnknown) return 'authorization_unknown';
  if (error instanceof ApiError) {
    if (error.code === 'invalid_state') return card.status === 'failed' ? 'card_failed' : 'card_not_issued';
    if (error.code === 'idempotency_conflict') return 'id_conflict';
    if (error.code === 'validation_failed') return 'unbookable';
    if (error.code === 'card_not_found') return 'card_unknown';
  }
  throw error;
}
