import { z } from 'zod';
import { declare, resource } from '../api/http/route.ts';
import { DEFAULT_FEE_PLAN, Fee, FeePlan, FundingKind, quoteFunding } from '../domain/fees.ts';
import { AmountCents, Usd } from '../domain/fields.ts';
import type { Orm } from '../platform/db/orm.ts';
import { readStatement } from '../platform/db/sql.ts';
import { QUOTE } from './examples.ts';

const QuoteRequest = z
  .strictObject({
    type: FundingKind.describe('What the quote is for.'),
    amount: AmountCents.describe('Cents to land on the card.'),
  })
  .meta({ id: 'CreateQuoteRequest', description: 'What the quote is for.' });

const QuoteResource = z
  .object({
    type: FundingKind,
    currency: Usd,
    card_amount: z.int().min(1).describe('Cents that land on the card.'),
    total_debited: z.int().min(1).describe('Cents debited from your balance: `card_amount` plus all fees.'),
    fees: z.array(Fee).describe('Fees on top of the amount. A fee of zero is left out.'),
  })
  .meta({ id: 'Quote', description: 'What a card or a top-up costs.' });

const createQuote = declare({
  method: 'post',
  path: '/quotes',
  scope: null,
  operationId: 'quotes.create',
  summary: 'Create a quote',
  description: 'What a card or a top-up would cost now, at your rates. Nothing is debited.',
  query: z.strictObject({}),
  body: QuoteRequest,
  responses: { 200: QuoteResource },
  examples: { body: { type: 'card_issue', amount: 5_000 }, 200: QUOTE },
});

export const quotes = resource({ createQuote }, ({ orm }: { orm: Orm }) => ({
  async createQuote({ caller, body }) {
    const [row] = await selectFeePlan(orm.em.fork(), { partnerId: caller.partnerId });
    const plan = row?.fee_plan ? FeePlan.parse(row.fee_plan) : DEFAULT_FEE_PLAN;
    const { fees, totalDebitedCents } = quoteFunding(plan, body.type, body.amount);
    return {
      status: 200,
      body: {
        type: body.type,
        currency: 'USD',
        card_amount: body.amount,
        total_debited: totalDebitedCents,
        fees,
      },
    };
  },
}));

const selectFeePlan = readStatement((db, { partnerId }: { partnerId: string }) =>
  db.selectFrom('partner').select('fee_plan').where('id', '=', partnerId),
);
