import { z } from 'zod';
import type { Orm } from '../../db/orm.ts';
import { query } from '../../db/sql.ts';
import { DEFAULT_FEE_PLAN, Fee, FeePlan, FundingKind, quoteFunding } from '../../domain/fees.ts';
import { AmountCents } from '../../domain/fields.ts';
import { route } from '../route.ts';

const QuoteResource = z.object({
  type: FundingKind,
  currency: z.literal('USD'),
  card_amount: z.int(),
  total_debited: z.int(),
  fees: z.array(Fee),
});

export const createQuote = ({ orm }: { orm: Orm }) =>
  route({
    method: 'post',
    path: '/quotes',
    summary: 'What funding a card would cost',
    query: z.strictObject({}),
    body: z.strictObject({
      type: FundingKind,
      amount: AmountCents.meta({ description: 'Cents landing on the card.' }),
    }),
    responses: { 200: QuoteResource },
    async handle({ caller, body }) {
      const [row] = await query<{ fee_plan: unknown }>(
        orm.em.fork(),
        'SELECT fee_plan FROM partner WHERE id = $1',
        [caller.partnerId],
      );
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
  });
