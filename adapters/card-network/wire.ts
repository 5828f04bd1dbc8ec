import { z } from 'zod';
import { isId } from '../../domain/ids.ts';
import type { IssueCardRequest } from './card-network.ts';

/** What the HTTP card network and its client say to each other, and what it calls back with. */
const Token = z.string().refine((value) => isId('card', value), 'must be a card id');

/** Body of POST /issuances. */
export const IssuanceRequest = z.object({
  token: Token,
  productCode: z.string().regex(/^[\x20-\x7e]{1,200}$/),
  bin: z.string().regex(/^[0-9]{4,12}$/),
  amountCents: z.int().positive(),
  cardholderName: z.string().nullable(),
}) satisfies z.ZodType<IssueCardRequest>;

const Issuance = z.discriminatedUnion('status', [
  z.object({
    status: z.literal('issued'),
    networkCardId: z.string().regex(/^[\x21-\x7e]{1,100}$/),
    last4: z.string().regex(/^[0-9]{4}$/),
    expMonth: z.int().min(1).max(12),
    expYear: z.int().min(2000).max(9999),
  }),
  z.object({ status: z.literal('accepted') }),
  z.object({ status: z.enum(['declined', 'failed']), reason: z.string().regex(/^[a-z_]{1,100}$/) }),
]);

/** 200 of POST /issuances. The token is said again, so that another process on the port is not believed. */
export const IssuanceResponse = z.object({ token: Token, issuance: Issuance });

/** 200 of GET /issuances/{token}: an unknown token is said, not a 404, which a wrong address would give as well. */
export const LookUpResponse = z.object({
  token: Token,
  issuance: z.discriminatedUnion('status', [...Issuance.options, z.object({ status: z.literal('unknown') })]),
});

/** Body of a callback: that something changed, never what. */
export const NetworkCallback = z.object({
  token: z.string().min(1).max(100),
  type: z.enum(['card.issuance']),
});
export type NetworkCallback = z.infer<typeof NetworkCallback>;
