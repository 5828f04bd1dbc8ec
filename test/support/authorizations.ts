import assert from 'node:assert/strict';
import { createCard } from './cards.ts';
import type { Answer, CallOptions, TestPartner } from './stack.ts';

/** A test card, and what can be simulated on it. Each function returns the answer, whatever it is. */
export interface AuthorizedCard {
  id: string;
  authorize(amount: number, more?: object, options?: CallOptions): Promise<Answer>;
  forceCapture(amount: number, more?: object): Promise<Answer>;
  simulate(body: object): Promise<Answer>;
  change(verb: 'freeze' | 'unfreeze' | 'block'): Promise<Answer>;
  /** Its balance and available balance. */
  money(): Promise<[balance: number, available: number]>;
  // biome-ignore lint/suspicious/noExplicitAny: transactions as the API returns them, newest first.
  transactions(): Promise<any[]>;
}

export async function authorizedCard(partner: TestPartner, amount = 1_000): Promise<AuthorizedCard> {
  const card = await createCard(partner, { amount });
  assert.equal(card.status, 201, card.text);
  const { id } = card.json;
  const post = (path: string, body: object = {}, options: CallOptions = {}) =>
    partner.call('POST', path, { body, ...options });
  return {
    id,
    authorize: (cents, more = {}, options = {}) =>
      post(`/test/cards/${id}/authorizations`, { amount: cents, ...more }, options),
    forceCapture: (cents, more = {}) => post(`/test/cards/${id}/force-capture`, { amount: cents, ...more }),
    simulate: (body) => post(`/test/cards/${id}/simulate-transaction`, body),
    change: (verb) => post(`/cards/${id}/${verb}`),
    async money() {
      const { json } = await partner.call('GET', `/cards/${id}`);
      return [json.balance, json.available_balance];
    },
    transactions: async () => (await partner.call('GET', `/cards/${id}/transactions`)).json.data,
  };
}

export const onAuthorization = (partner: TestPartner, id: string) => ({
  increment: (amount: number) =>
    partner.call('POST', `/test/authorizations/${id}/increment`, { body: { amount } }),
  capture: (body: object = {}, options: CallOptions = {}) =>
    partner.call('POST', `/test/authorizations/${id}/capture`, { body, ...options }),
  reverse: (body: object = {}) => partner.call('POST', `/test/authorizations/${id}/reverse`, { body }),
  expire: () => partner.call('POST', `/test/authorizations/${id}/expire`),
  read: async () => (await partner.call('GET', `/authorizations/${id}`)).json,
});
