import { makeAccount } from '../../dev/increase/objects.ts';
import {
  makeAuthorization,
  makePendingTransaction,
  makeReversal,
  makeSettlement,
} from '../../dev/increase/payment-objects.ts';
import { snapshotPayment } from '../../issuers/increase/snapshot.ts';
import { type CardPayment, DECISION_EVENT, EVENTS_PATH } from '../../issuers/increase/wire.ts';
import {
  type IssuedPayments,
  PAYMENT_CENTS,
  paymentNumber,
  type Standing,
  takePage,
  tokenDigits,
  UPDATED_AFTER_MS,
} from './issued-payments.ts';
import { type BenchNetwork, OURS } from './start-issuer.ts';

const PAGE = 100;
const FUNDING_ACCOUNT = 'sandbox_account_funding';
const id = (kind: string, number: number): string => `sandbox_${kind}_bench_${tokenDigits(number)}`;

const USE = {
  amount: PAYMENT_CENTS,
  direction: 'settlement',
  processingCategory: 'purchase',
  standInReason: null,
  merchant: {
    merchant_category_code: '5812',
    merchant_city: 'NEW YORK',
    merchant_country: 'US',
    merchant_descriptor: 'SHOP',
  },
} as const;

export function increaseNetwork(payments: IssuedPayments): BenchNetwork {
  let pages = 0;

  function authorizationOf(number: number) {
    const of = {
      paymentId: id('card_payment', number),
      pendingTransactionId: id('pending_transaction', number),
      expiresAt: payments.expiresAt,
    };
    const made = makeAuthorization(USE, { actioner: 'increase', decisionId: null }, of);
    return { ...made, id: id('card_authorization', number) };
  }

  function make(number: number, standing: Standing): CardPayment {
    const authorization = authorizationOf(number);
    const { card_payment_id: paymentId } = authorization;
    const created_at = new Date(payments.createdMs(number)).toISOString();
    const updated_at = new Date(payments.createdMs(number) + UPDATED_AFTER_MS).toISOString();
    const elements: CardPayment['elements'] = [
      { category: 'card_authorization', created_at, card_authorization: authorization },
    ];
    if (standing === 'cleared') {
      const { id: authorizationId, pending_transaction_id: pendingTransactionId } = authorization;
      const settlement = makeSettlement(PAYMENT_CENTS, USE, {
        paymentId,
        authorizationId,
        pendingTransactionId,
      });
      elements.push({
        category: 'card_settlement',
        created_at: updated_at,
        card_settlement: { ...settlement, id: id('card_settlement', number) },
      });
    }
    if (standing === 'reversed') {
      const reversal = makeReversal(PAYMENT_CENTS, 0, authorization);
      elements.push({
        category: 'card_reversal',
        created_at: updated_at,
        card_reversal: { ...reversal, id: id('card_reversal', number) },
      });
    }
    return { id: paymentId, card_id: payments.cardToken(number), created_at, elements };
  }

  function makePending(number: number, standing: Standing) {
    const pending = makePendingTransaction(authorizationOf(number), {
      id: id('pending_transaction', number),
      accountId: 'sandbox_account_of_the_card',
      cardId: payments.cardToken(number),
      createdAt: new Date(payments.createdMs(number)).toISOString(),
    });
    return standing === 'held' ? pending : { ...pending, status: 'complete' as const, held_amount: 0 };
  }

  function find<Made>(number: number, one: (number: number, standing: Standing) => Made): Made | null {
    const standing = payments.standing(number);
    return standing && one(number, standing);
  }

  function* pendingFirst(below: number | null): Generator<number> {
    for (const number of payments.newestFirst(0, Date.now(), below))
      if (payments.standing(number) === 'held') yield number;
  }

  function list(
    numbers: Iterable<number>,
    one: (number: number, standing: Standing) => { id: string },
  ): object {
    pages += 1;
    const { page, hasMore } = takePage(numbers, PAGE);
    const data = page.map((number) => find(number, one));
    return { data, next_cursor: hasMore ? data.at(-1)?.id : null };
  }

  function listPayments(query: URLSearchParams): object {
    const cursor = query.get('cursor');
    const fromMs = Date.parse(query.get('created_at.on_or_after') ?? '');
    const beforeMs = Date.parse(query.get('created_at.before') ?? '');
    const numbers = payments.newestFirst(fromMs - 1, beforeMs, paymentNumber(cursor));
    return list(numbers, make);
  }

  return {
    name: 'increase',
    variables: (url) => ({
      INCREASE_API_KEY: 'bench',
      INCREASE_WEBHOOK_SECRET: 'the-secret-of-both-subscriptions',
      INCREASE_BASE_URL: url,
      INCREASE_FUNDING_ACCOUNT_ID: FUNDING_ACCOUNT,
      // Its own rate would be all that is measured.
      INCREASE_REQUESTS_PER_SECOND: '99999',
    }),
    pages: () => pages,
    snapshot: (number, standing) => {
      const pending = makePending(number, standing);
      return snapshotPayment(make(number, standing), new Map([[pending.id, pending]]));
    },
    versionMs: () => null,
    answer(path, query) {
      const [, name, named = ''] = /^\/(\w+)\/?(.*)$/.exec(path) ?? [];
      const number = paymentNumber(named) ?? 0;
      switch (name) {
        // Cards and their money are older than the period.
        case 'cards':
        case 'account_transfers':
          return { data: [], next_cursor: null };
        case 'card_payments':
          return named === '' ? listPayments(query) : find(number, make);
        case 'pending_transactions': {
          const cursor = query.get('cursor');
          return named === ''
            ? list(pendingFirst(paymentNumber(cursor)), makePending)
            : find(number, makePending);
        }
        case 'accounts': {
          const of = { key: null, createdAt: new Date(payments.createdMs(0)).toISOString() };
          return { ...makeAccount({ name: 'funding' }, of), id: FUNDING_ACCOUNT };
        }
        case 'event_subscriptions': {
          const one = { status: 'active', url: OURS + EVENTS_PATH, selected_event_categories: null };
          const asked = { ...one, selected_event_categories: [{ event_category: DECISION_EVENT }] };
          return { data: [one, asked], next_cursor: null };
        }
        default:
          return null;
      }
    },
  };
}
