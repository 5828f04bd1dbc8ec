import { makeCard, makeEvent, makeTransaction, type Transaction } from '../../dev/lithic/objects.ts';
import { snapshotTransaction } from '../../issuers/lithic/snapshot.ts';
import { AUTHORIZATIONS_PATH, EVENTS_PATH, TRANSACTION_EVENT } from '../../issuers/lithic/wire.ts';
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

const CARD = makeCard({}, new Date());
const token = (kind: number, number: number): string =>
  `0000000${kind}-0000-4000-8000-${tokenDigits(number)}`;

export function lithicNetwork(payments: IssuedPayments): BenchNetwork {
  let pages = 0;

  const updatedMs = (number: number, standing: Standing): number =>
    payments.createdMs(number) + (standing === 'held' ? 0 : UPDATED_AFTER_MS);

  function make(number: number, standing: Standing): Transaction {
    const createdAt = new Date(payments.createdMs(number));
    const card = { ...CARD, token: payments.cardToken(number) };
    const made: Transaction = { ...makeTransaction(card, {}, createdAt), token: token(0, number) };
    const ask = { type: 'AUTHORIZATION', amount: PAYMENT_CENTS, token: token(1, number) } as const;
    made.events.push(makeEvent(ask, createdAt));
    const updatedAt = new Date(updatedMs(number, standing));
    if (standing === 'held') made.amounts.hold.amount = PAYMENT_CENTS;
    else {
      const type = standing === 'cleared' ? 'CLEARING' : 'AUTHORIZATION_REVERSAL';
      made.events.push(makeEvent({ ...ask, type, token: token(2, number) }, updatedAt));
    }
    made.updated = updatedAt.toISOString();
    return made;
  }

  function find(number: number): Transaction | null {
    const standing = payments.standing(number);
    return standing && make(number, standing);
  }

  function list(query: URLSearchParams): object {
    pages += 1;
    const after = query.get('starting_after');
    const [beginMs, endMs] = [query.get('begin'), query.get('end')].map((time) => Date.parse(time ?? ''));
    const numbers = payments.newestFirst(beginMs ?? 0, endMs ?? 0, paymentNumber(after));
    const { page, hasMore } = takePage(numbers, Number(query.get('page_size')));
    return { data: page.map(find), has_more: hasMore };
  }

  return {
    name: 'lithic',
    variables: (url) => ({
      LITHIC_API_KEY: 'bench',
      LITHIC_BASE_URL: url,
      // Its own rate would be all that is measured.
      LITHIC_REQUESTS_PER_SECOND: '99999',
    }),
    pages: () => pages,
    snapshot: (number, standing) => snapshotTransaction(make(number, standing)),
    versionMs: updatedMs,
    answer(path, query) {
      const [, name, id = ''] = /^\/v1\/(\w+)\/?(.*)$/.exec(path) ?? [];
      switch (name) {
        case 'cards':
          // They are older than the period.
          return { data: [], has_more: false };
        case 'transactions':
          return id === '' ? list(query) : find(paymentNumber(id) ?? 0);
        case 'responder_endpoints':
          return { enrolled: true, url: OURS + AUTHORIZATIONS_PATH };
        case 'event_subscriptions': {
          const one = {
            token: 'ep_1',
            disabled: false,
            url: OURS + EVENTS_PATH,
            event_types: [TRANSACTION_EVENT],
          };
          return { data: [one], has_more: false };
        }
        default:
          return null;
      }
    },
  };
}
