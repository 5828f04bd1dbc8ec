import { z } from 'zod';
import { BALANCE } from '../accounts/examples.ts';
import { creditFaucet } from '../accounts/faucet.ts';
import { BalanceResource } from '../accounts/resource.ts';
import { keyedRequest, replyOnce } from '../api/http/keyed.ts';
import { declare, resource } from '../api/http/route.ts';
import { requestedCardId } from '../cards/routes.ts';
import { AmountCents, Label } from '../domain/fields.ts';
import { idPattern } from '../domain/ids.ts';
import { CategoryCode, CountryCode } from '../domain/merchant.ts';
import type { PaymentMerchant } from '../domain/payment.ts';
import { TransactionType } from '../domain/transaction.ts';
import type { CommandContext } from '../requests/command-context.ts';
import { SIMULATE_TRANSACTION, TRANSACTION } from './examples.ts';
import type { MessageQueue } from './message-queue.ts';
import { simulateOnCard, simulateTogether } from './simulate.ts';
import { TransactionResource } from './transaction-resource.ts';

const MAX_CREDIT_CENTS = 10_000_000;

const CreditRequest = z
  .strictObject({
    amount: AmountCents.max(MAX_CREDIT_CENTS, `must be at most ${MAX_CREDIT_CENTS}`).describe(
      'Cents to add.',
    ),
  })
  .meta({ id: 'CreditBalanceRequest', description: 'How much to add to the test balance.' });

/** The most that can be simulated where no balance limits it. It is the same as one faucet credit. */
export const MAX_UNCHECKED_CENTS = 10_000_000;

/** Where a simulated transaction or authorization takes place. */
export const MERCHANT_FIELDS = {
  merchant_name: Label(255).optional().describe("The merchant's name."),
  merchant_category_code: CategoryCode.optional().describe(
    'The merchant category code: four digits (ISO 18245).',
  ),
  merchant_city: Label(255).optional().describe("The merchant's city."),
  merchant_country: CountryCode.optional().describe(
    "The merchant's country: an ISO 3166-1 alpha-2 code in capitals.",
  ),
};

/** docs/partners/transactions.md says what each type and `force` do. */
const SimulateTransactionRequest = z
  .strictObject({
    type: TransactionType.describe('What to simulate.'),
    amount: AmountCents.describe(
      'Cents. A refund or a transaction with `force` can be at most 10,000,000 cents.',
    ),
    ...MERCHANT_FIELDS,
    transaction_id: z
      .string()
      .regex(new RegExp(idPattern('txn')), 'must be the id of a transaction')
      .optional()
      .describe(
        'The purchase on this card that a refund gives money back for, all or a part of it. The merchant is then that of the purchase, ' +
          'unless you name one.',
      ),
    force: z
      .boolean({ error: 'must be true or false' })
      .optional()
      .describe(
        "Processes the transaction as if the card network had reported it, whatever the card's status. A purchase on a frozen card " +
          'is declined; on a blocked card it is a late debit, which your balance pays.',
      ),
  })
  .refine(
    ({ type, force, amount }) => (type !== 'refund' && force !== true) || amount <= MAX_UNCHECKED_CENTS,
    {
      path: ['amount'],
      message: `must be at most ${MAX_UNCHECKED_CENTS} for a refund, or with force`,
    },
  )
  .refine(({ type, transaction_id }) => type === 'refund' || transaction_id === undefined, {
    path: ['transaction_id'],
    message: 'can only be given with type refund',
  })
  .meta({
    id: 'SimulateTransactionRequest',
    description: 'The transaction to simulate.',
    if: {
      anyOf: [
        { properties: { type: { const: 'refund' } } },
        { properties: { force: { const: true } }, required: ['force'] },
      ],
    },
    // biome-ignore lint/suspicious/noThenProperty: it is JSON Schema's.
    then: { properties: { amount: { maximum: MAX_UNCHECKED_CENTS } } },
  });

export interface SimulationDependencies extends CommandContext {
  messages: MessageQueue;
  /** Called after a commit, so that events are sent without delay. */
  eventsWritten(): void;
}

const creditTestBalance = declare({
  method: 'post',
  path: '/test/credit',
  scope: 'test:write',
  operationId: 'testHelpers.creditBalance',
  summary: 'Credit the test balance',
  description: 'Adds pretend money: at most $100,000 per call, and 60 calls in any hour.',
  mode: 'test',
  idempotencyKey: 'required',
  body: CreditRequest,
  responses: { 201: BalanceResource },
  examples: { body: { amount: 1_000_000 }, 201: BALANCE },
});

const simulateCardTransaction = declare({
  method: 'post',
  path: '/test/cards/:cardId/simulate-transaction',
  scope: 'test:write',
  operationId: 'testHelpers.simulateTransaction',
  summary: 'Simulate a transaction',
  description:
    'Simulates a purchase, decline or refund on a test card. The card has to be active unless you set `force`. As in live mode, ' +
    "money moves, fees are debited, and an event is sent. A purchase that spending controls refuse, or above the card's " +
    'available balance, is declined.',
  mode: 'test',
  idempotencyKey: 'accepted',
  body: SimulateTransactionRequest,
  responses: { 201: TransactionResource },
  examples: { body: SIMULATE_TRANSACTION, 201: TRANSACTION },
  errors: ['card_not_found', 'invalid_state'],
});

export const testMode = resource(
  { creditTestBalance, simulateCardTransaction },
  (dependencies: SimulationDependencies) => ({
    async creditTestBalance(input) {
      const request = keyedRequest('credit_faucet', input, null);
      return replyOnce(await creditFaucet(dependencies, request, input.body.amount));
    },

    async simulateCardTransaction(input) {
      const { caller, body, requestId } = input;
      const cardId = requestedCardId(input);
      const { partnerId, mode } = caller;
      const { type, amount: amountCents, force: forced = false } = body;
      const message = {
        id: `simulated/${requestId}`,
        type,
        amountCents,
        isFinal: true,
        merchant: toMerchant(body),
      };
      const simulated = {
        message,
        networkPaymentId: null,
        ttlMs: 0,
        forced,
        isSimulation: !forced,
        refundedTransactionId: body.transaction_id,
      };
      if (input.idempotencyKey === '') {
        const about = { partnerId, mode, cardId };
        return { status: 201, body: await simulateTogether(dependencies.messages, about, simulated) };
      }
      const request = keyedRequest('simulate_transaction', input, cardId);
      return replyOnce(await simulateOnCard(dependencies, request, simulated), dependencies.eventsWritten);
    },
  }),
);

interface GivenMerchant {
  merchant_name?: string | undefined;
  merchant_category_code?: string | undefined;
  merchant_city?: string | undefined;
  merchant_country?: string | undefined;
}

/** The merchant of {@link MERCHANT_FIELDS}. */
export const toMerchant = (given: GivenMerchant): PaymentMerchant => ({
  name: given.merchant_name ?? null,
  categoryCode: given.merchant_category_code ?? null,
  city: given.merchant_city ?? null,
  country: given.merchant_country ?? null,
});
