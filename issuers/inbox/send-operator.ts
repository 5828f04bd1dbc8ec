import { readCard } from '../../cards/reads.ts';
import { ApiError } from '../../domain/api-error.ts';
import { AmountCents, NetworkId } from '../../domain/fields.ts';
import { CategoryCode, CountryCode } from '../../domain/merchant.ts';
import { Refusal } from '../../domain/refusal.ts';
import type { NetworkReport, NetworkRequest } from '../../domain/simulated-network.ts';
import { WrongUsage } from '../../operator/errors.ts';
import { Text, WholeNumber } from '../../operator/flag-values.ts';
import type { Session } from '../../operator/session.ts';
import { flag, needed, oneOf, toggle, verb } from '../../operator/verbs.ts';
import { readAuthorization } from '../../payments/authorization-operator.ts';
import { readTransaction } from '../../payments/transaction-operator-reads.ts';
import { notifyEvents } from '../../platform/db/notifications.ts';
import { transaction } from '../../platform/db/transaction.ts';
import { recordAudit } from '../../requests/operator-context.ts';
import { takeSaid } from './simulated-messages.ts';

const TYPES = [
  ...(['authorization', 'increment', 'clearing', 'reversal', 'expiry'] as const),
  ...(['purchase', 'decline', 'refund'] as const),
] as const;
type SentType = (typeof TYPES)[number];
const EXAMPLE = '--card card_01k0… --type purchase --amount 1250 --network-transaction-id net-4711';

/** Says something for the simulated network (docs/operator.md). */
export const sendVerb = verb({
  about: 'send what the network says about a card; sending it again returns the same',
  takes: {
    card: needed('<id>', 'id of the live card', Text(100)),
    type: needed('<type>', TYPES.join(', '), oneOf(TYPES)),
    amount: flag('<cents>', 'above zero; not needed for a reversal or an expiry', WholeNumber(AmountCents)),
    networkTransactionId: needed('<id>', "the network's id for it", NetworkId),
    networkAuthorizationId: flag(
      '<id>',
      "the network's id of the authorization; for a new one, its own id if left out",
      NetworkId,
    ),
    partial: toggle('of a clearing: more may follow, and the rest stays held'),
    merchantName: flag('<name>', "the merchant's name", Text(255)),
    merchantCategoryCode: flag('<code>', 'four digits', CategoryCode),
    merchantCountry: flag('<code>', 'two capital letters', CountryCode),
    notForced: toggle('let a purchase on a blocked card be declined'),
  },
  examples: [
    EXAMPLE,
    `${EXAMPLE} --not-forced`,
    '--card card_01k0… --type authorization --amount 1250 --network-transaction-id net-1',
    '--card card_01k0… --type clearing --amount 1250 --network-transaction-id net-2 --network-authorization-id net-1',
  ],
  async run(given, { session }) {
    refuseFlags(given);
    const card = await readCard(await session.orm(), given.card);
    requireSimulated(session, card);
    const operator = await session.operator();
    const { orm, actor } = operator;
    const said = toSaid(given, card.network_card_id ?? '');
    const sent = await transaction(orm, async (tx) => {
      const { id: cardId, partner_id: partnerId } = card;
      const { authorizationTtlMs: ttlMs } = session.config;
      const limits = { ttlMs, lockWaitMs: null };
      const taken = await takeSaid(tx, { cardId, partnerId, mode: 'live' }, said, limits);
      if (taken.isNew) {
        const { networkTransactionId, networkAuthorizationId, type, amount: amountCents } = given;
        const forced = type === 'purchase' && { forced: !given.notForced };
        const about = networkAuthorizationId !== null && { networkAuthorizationId };
        recordAudit(tx, {
          actor,
          action: 'network-event.send',
          subject: taken.answer.transactionId ?? taken.answer.authorizationId ?? cardId,
          detail: { cardId, networkTransactionId, ...about, type, amountCents, ...forced },
        });
      }
      return taken;
    }).catch((error: unknown) => {
      if (error instanceof ApiError)
        throw new Refusal(`Nothing was ${'forced' in said ? 'settled' : 'changed'}. ${error.message}`);
      throw error;
    });
    await notifyEvents(orm);
    const { transactionId, authorizationId } = sent.answer;
    const isTransaction = !('networkAuthorizationId' in said) || said.type === 'clearing';
    const value =
      isTransaction && transactionId !== null
        ? await asPartnersSee(readTransaction(orm, transactionId))
        : await asPartnersSee(readAuthorization(orm, authorizationId ?? ''));
    return { value, note: sent.isNew ? undefined : 'It was already sent; nothing has changed.' };
  },
});

/** Without what only operators see of it. */
async function asPartnersSee(read: Promise<object>): Promise<object> {
  const {
    partner_id,
    partner_name,
    network_transaction_id,
    network_authorization_id,
    transactions,
    ...seen
  } = (await read) as Record<string, unknown>;
  return seen;
}

interface Given {
  type: SentType;
  amount: number | null;
  networkTransactionId: string;
  networkAuthorizationId: string | null;
  partial: boolean;
  merchantName: string | null;
  merchantCategoryCode: string | null;
  merchantCountry: string | null;
  notForced: boolean;
}

/** @throws WrongUsage if the flags do not go together */
function refuseFlags({ type, amount, networkAuthorizationId, partial, notForced }: Given): void {
  const isTransaction = type === 'purchase' || type === 'decline' || type === 'refund';
  const ends = type === 'reversal' || type === 'expiry';
  if (amount === null && !ends) throw new WrongUsage('give --amount');
  if (amount !== null && type === 'expiry') throw new WrongUsage('--amount does not go with an expiry');
  if (isTransaction && (networkAuthorizationId !== null || partial))
    throw new WrongUsage(`--network-authorization-id and --partial do not go with --type ${type}`);
  if (partial && type !== 'clearing') throw new WrongUsage('--partial goes with --type clearing');
  if (notForced && type !== 'purchase') throw new WrongUsage('--not-forced goes with --type purchase');
  if (networkAuthorizationId === null && ends) throw new WrongUsage('give --network-authorization-id');
}

function toSaid(given: Given, networkCardId: string): NetworkReport | NetworkRequest {
  const { type, amount: amountCents, networkTransactionId, networkAuthorizationId } = given;
  const about = {
    networkCardId,
    networkTransactionId,
    currency: 'USD' as const,
    merchant: {
      name: given.merchantName,
      categoryCode: given.merchantCategoryCode,
      city: null,
      country: given.merchantCountry,
    },
  };
  if (type === 'authorization' || type === 'increment')
    return { ...about, type, networkAuthorizationId, amountCents: amountCents ?? 0 };
  if (type === 'clearing' || type === 'reversal' || type === 'expiry') {
    const final = !given.partial;
    return {
      isReadable: true,
      ...about,
      type,
      networkAuthorizationId,
      networkPaymentId: null,
      amountCents,
      final,
    };
  }
  const forced = !given.notForced;
  return { isReadable: true, ...about, type, amountCents: amountCents ?? 0, forced, networkPaymentId: null };
}

function requireSimulated(session: Session, card: { id: string; mode: string }): void {
  if (card.mode === 'test') {
    throw new Refusal(
      `${card.id} is a test card, which has no network: use POST /v1/test/cards/${card.id}/simulate-transaction.`,
    );
  }
  if (session.config.cardNetwork !== 'simulated') {
    throw new Refusal(
      'CARD_NETWORK is not "simulated" here, and a real network sends its own transactions. If this installation ' +
        'runs on the simulated network, set CARD_NETWORK as the API has it.',
    );
  }
}
