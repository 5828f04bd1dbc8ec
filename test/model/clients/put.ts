import { randomUUID } from 'node:crypto';
import { query } from '../../../platform/db/sql.ts';
import type { Answer } from '../../support/stack.ts';
import type { Account, Card } from '../account.ts';
import type { Merchant } from '../rules/controls.ts';
import type { Question } from '../rules/operation.ts';
import { ask, tellAsNetwork } from './ask.ts';
import { type Service, untilThere } from './running-service.ts';

export interface Put {
  question: Question;
  send(): Promise<Answer>;
  /** Sends another request with the same key or network transaction id, if it has one. */
  altered?: () => Promise<Answer>;
  /** Whether a replayed answer says that it is one. */
  saysSo: boolean;
}

/** A request of a partner, and another one that must not use the same key. */
interface Requests {
  /** POST, unless it is given. */
  method?: 'PATCH';
  path: string;
  body?: object;
  other: { path: string; body?: object };
}

export function keyed(service: Service, { key }: Account, question: Question, requests: Requests): Put {
  const { method = 'POST', path, body, other } = requests;
  const common = { key, method, idempotencyKey: randomUUID() } as const;
  return {
    question,
    send: () => ask(service, { ...common, path, ...(body && { body }) }),
    altered: () => ask(service, { ...common, ...other }),
    saysSo: true,
  };
}

/** A request that needs no key. Half of the time it has one; without, it could not be sent again after a lost answer. */
export function keyedOrNot(
  service: Service,
  { account, pick }: { account: Account; pick: number },
  question: Question,
  requests: Requests,
): Put {
  if (service.troubled || pick % 2 === 0) return keyed(service, account, question, requests);
  const { method = 'POST', path, body } = requests;
  const request = { key: account.key, method, path, ...(body && { body }) } as const;
  return { question, send: () => ask(service, request), saysSo: false };
}

export function read(service: Service, { key }: Account, question: Question, path: string): Put {
  return { question, send: () => ask(service, { key, method: 'GET', path }), saysSo: false };
}

export function reported(
  service: Service,
  question: Question,
  { message, other }: { message: object; other: object },
  path = '/network/transactions',
): Put {
  const common = { networkTransactionId: randomUUID(), currency: 'USD' };
  return {
    question,
    send: () => tellAsNetwork(service, path, { ...common, ...message }),
    altered: () => tellAsNetwork(service, path, { ...common, ...other }),
    saysSo: false,
  };
}

/** What the network asks, and waits for the decision. */
export const requested = (...asked: [Service, Question, { message: object; other: object }]): Put =>
  reported(...asked, '/network/authorizations');

export function merchantFields({ name, category_code, city, country }: Merchant): object {
  return {
    merchant_name: name ?? undefined,
    merchant_category_code: category_code ?? undefined,
    merchant_city: city ?? undefined,
    merchant_country: country ?? undefined,
  };
}

export function networkMerchant({ name, category_code: categoryCode, city, country }: Merchant): object {
  return { name, categoryCode, city, country };
}

/** @returns undefined before the card is issued */
export async function findNetworkCardId({ stack }: Service, card: Card): Promise<string | undefined> {
  if (card.networkCardId !== undefined) return card.networkCardId;
  const [row] = await untilThere(() =>
    query<{ network_card_id: string | null }>(
      stack.orm.em.fork(),
      'SELECT network_card_id FROM card WHERE id = $1',
      [card.id],
    ),
  );
  card.networkCardId = row?.network_card_id ?? undefined;
  return card.networkCardId;
}
