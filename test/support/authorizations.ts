import assert from 'node:assert/strict';
import { createCard } from './cards.ts';
import type { CallOptions, TestPartner } from './stack.ts';

/** A test card, and what can be simulated on it. Each function returns the answer, whatever it is. */
export async function authorizedCard(partner: TestPartner, amount = 1_000) {
  const card = await createCard(partner, { amount });
  assert.equal(card.status, 201, card.text);
  const id: string = card.json.id;
  const post = (path: string, body: object = {}, options: CallOptions = {}) =>
    partner.call('POST', path, { body, ...options });
  return {
    id,
    authorize: (cents: number, more: object = {}, options: CallOptions = {}) =>
      post(`/test/cards/${id}/authorizations`, { amount: cents, ...more }, options),
    forceCapture: (cents: number, more: object = {}) =>
      post(`/test/cards/${id}/force-capture`, { amount: cents, ...more }),
    simulate: (body: object) => post(`/test/cards/${id}/simulate-transaction`, body),
    change: (verb: 'freeze' | 'unfreeze' | 'block') => post(`/cards/${id}/${verb}`),
    async money(): Promise<[balance: number, available: number]> {
      const { json } = await partner.call('GET', `/cards/${id}`);
      return [json.balance, json.available_balance];
    },
    // biome-ignore lint/suspicious/noExplicitAny: transactions as the API returns them, newest first.
    transactions: async (): Promise<any[]> =>
      (await partner.call('GET', `/cards/${id}/transactions`)).json.data,
  };
}

export type AuthorizedCard = Awaited<ReturnType<typeof authorizedCard>>;

export const onAuthorization = (partner: TestPartner, id: string) => ({
  increment: (amount: number) =>
    partner.call('POST', `/test/authorizations/${id}/increment`, { body: { amount } }),
  capture: (body: object = {}, options: CallOptions = {}) =>
    partner.call('POST', `/test/authorizations/${id}/capture`, { body, ...options }),
  reverse: (body: object = {}) => partner.call('POST', `/test/authorizations/${id}/reverse`, { body }),
  expire: () => partner.call('POST', `/test/authorizations/${id}/expire`),
  read: async () => (await partner.call('GET', `/authorizations/${id}`)).json,
});
