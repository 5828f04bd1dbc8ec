import { z } from 'zod';
import type { Response } from './faults.ts';
import type { Program } from './program.ts';

const Amount = z.int().min(0);
const Merchant = z.object({
  descriptor: z.string(),
  mcc: z.string().optional(),
  merchant_acceptor_city: z.string().optional(),
  merchant_acceptor_country: z.string().optional(),
});
const OfCard = Merchant.extend({ pan: z.string(), amount: Amount });
const Authorize = OfCard.extend({
  status: z
    .enum([
      'AUTHORIZATION',
      'BALANCE_INQUIRY',
      'CREDIT_AUTHORIZATION',
      'FINANCIAL_AUTHORIZATION',
      'FINANCIAL_CREDIT_AUTHORIZATION',
    ])
    .default('AUTHORIZATION'),
});
const OfTransaction = z.object({ token: z.string(), amount: Amount.optional() });
const Void = OfTransaction.extend({
  type: z.enum(['AUTHORIZATION_REVERSAL', 'AUTHORIZATION_EXPIRY']).default('AUTHORIZATION_REVERSAL'),
});

/**
 * The simulations of Lithic's sandbox: what a merchant does with a card. @param what the path below
 * /v1/simulate
 */
export async function simulate(program: Program, what: string, body: unknown): Promise<Response> {
  const cardWith = (pan: string) => [...program.cards.values()].find((card) => card.pan === pan);
  const done = (token: string): Response => ({ status: 201, body: { token, debugging_request_id: token } });
  switch (what) {
    case 'authorize':
    case 'return': {
      const asked = Authorize.parse(body);
      const card = cardWith(asked.pan);
      if (card === undefined) return { status: 400, body: { message: 'There is no card with this number' } };
      const { descriptor, mcc, merchant_acceptor_city: city, merchant_acceptor_country: country } = asked;
      const merchant = { descriptor, mcc, city, country };
      const { amount, status } = asked;
      if (what === 'authorize')
        return done((await program.authorize({ card, amount, status, ...merchant })).token);
      return done(program.begin(card, merchant, { type: 'RETURN', amount, polarity: 'CREDIT' }).token);
    }
    case 'authorization_advice': {
      const { token, amount } = OfTransaction.required().parse(body);
      program.record(program.transaction(token), { type: 'AUTHORIZATION_ADVICE', amount });
      return done(token);
    }
    case 'clearing': {
      const { token, amount } = OfTransaction.parse(body);
      const transaction = program.transaction(token);
      const held = transaction.amounts.hold.amount;
      const polarity = held < 0 ? 'CREDIT' : 'DEBIT';
      program.record(transaction, { type: 'CLEARING', amount: amount ?? Math.abs(held), polarity });
      return done(token);
    }
    case 'void': {
      const { token, amount, type } = Void.parse(body);
      const transaction = program.transaction(token);
      const held = Math.abs(transaction.amounts.hold.amount);
      program.record(transaction, {
        type,
        amount: type === 'AUTHORIZATION_EXPIRY' ? held : (amount ?? held),
      });
      return done(token);
    }
    case 'return_reversal': {
      const { token } = OfTransaction.parse(body);
      const transaction = program.transaction(token);
      const amount = Math.abs(transaction.amounts.settlement.amount);
      program.record(transaction, { type: 'RETURN_REVERSAL', amount });
      return done(token);
    }
    default:
      return { status: 404, body: { message: 'There is no such simulation' } };
  }
}
