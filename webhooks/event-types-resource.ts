import { z } from 'zod';
import { ApiKeyInEvent } from '../accounts/api-key-resource.ts';
import { BALANCE_ALERT, EXPIRING_API_KEY, LOW_BALANCE, RECOVERED_BALANCE } from '../accounts/examples.ts';
import { BalanceResource } from '../accounts/resource.ts';
import {
  BLOCKED_CARD,
  CARD,
  FAILED_CARD,
  FAILED_TOPUP,
  FAILED_WITHDRAWAL,
  FROZEN_CARD,
  TOPUP,
  UPDATED_CARD,
  WITHDRAWAL,
} from '../cards/examples.ts';
import { CardResource } from '../cards/resource.ts';
import { TopUpResource, WithdrawalResource } from '../cards/transfers/resource.ts';
import { CONFIRMED_DEPOSIT, DEPOSIT_IN_REVIEW, EXPIRED_DEPOSIT } from '../deposits/examples.ts';
import { DepositResource } from '../deposits/resource.ts';
import type { EventType } from '../domain/event.ts';
import { AuthorizationResource } from '../payments/authorization-resource.ts';
import { AUTHORIZATION, EXPIRED_AUTHORIZATION, TRANSACTION } from '../payments/examples.ts';
import { TransactionResource } from '../payments/transaction-resource.ts';
import { WebhookEndpointResource } from './endpoint-resource.ts';
import { DISABLED_ENDPOINT, FAILING_ENDPOINT, WEBHOOK_ENDPOINT } from './examples.ts';

const card = CardResource.describe('The card right after the change.');

/**
 * What an event's `data` can be. The API's schemas are named after it: `CardEvent` and `CardWebhookEvent`.
 */
export const EVENT_DATA = {
  Card: { card },
  Topup: { topup: TopUpResource.describe('The top-up right after the change.'), card },
  Withdrawal: { withdrawal: WithdrawalResource.describe('The withdrawal right after the change.'), card },
  Transaction: {
    transaction: TransactionResource,
    card: CardResource.describe('The card right after the transaction.'),
  },
  Authorization: {
    authorization: AuthorizationResource.describe('The authorization right after the change.'),
    card,
  },
  Deposit: { deposit: DepositResource.describe('The deposit right after the change.') },
  WebhookEndpoint: {
    webhook_endpoint: WebhookEndpointResource.describe(
      'The endpoint right after the change. Its `url` is the origin alone (scheme, host and port).',
    ),
  },
  ApiKey: { api_key: ApiKeyInEvent.describe('The key when the event was made, without its allowlist.') },
  Balance: {
    balance: BalanceResource.describe('Your balance right after the change.'),
    threshold: z.int().min(1).describe('The threshold of your balance alert, in cents.'),
  },
  Ping: { webhook_endpoint: WebhookEndpointResource.describe('The endpoint the ping is sent to.') },
};
export type EventData = typeof EVENT_DATA;

interface Declared<Name extends keyof EventData> {
  data: Name;
  /** What happened: the first sentence of the webhook in the API reference, without its full stop. */
  summary: string;
  /** When it is sent, for the list in docs/partners/webhooks.md. */
  when: string;
  example: { id: string; data: z.infer<z.ZodObject<EventData[Name]>> };
}

type AnyDeclared = { [Name in keyof EventData]: Declared<Name> }[keyof EventData];

/**
 * What there is to say of each type of event (docs/partners/webhooks.md): the schemas, the API reference, the
 * partners' list and the client's types are made from it.
 */
export const EVENT_TYPES = {
  'card.issued': {
    data: 'Card',
    summary: 'A card was issued',
    when: 'a card is active, at once or after a 202',
    example: { id: 'evt_01m81020r5wyhhsbhqpb0mty8y', data: { card: CARD } },
  },
  'card.issue_failed': {
    data: 'Card',
    summary: 'A card could not be issued',
    when: 'a card that was accepted with 202 could not be issued',
    example: { id: 'evt_01m810254x9y4q8bdbzj8m1rtd', data: { card: FAILED_CARD } },
  },
  'card.updated': {
    data: 'Card',
    summary: 'A card was changed',
    when: 'the `card_name`, `email`, `metadata` or `spending_controls` of a card changed',
    example: { id: 'evt_01m810217d0w5v3t6z9b2k8c4m', data: { card: UPDATED_CARD } },
  },
  'card.frozen': {
    data: 'Card',
    summary: 'A card was frozen',
    when: 'a card was frozen',
    example: { id: 'evt_01m810215682q5zyyj8yqdp2jp', data: { card: FROZEN_CARD } },
  },
  'card.unfrozen': {
    data: 'Card',
    summary: 'A card was unfrozen',
    when: 'a card was unfrozen',
    example: { id: 'evt_01m8102167j610wbcfr9rzt6tq', data: { card: CARD } },
  },
  'card.blocked': {
    data: 'Card',
    summary: 'A card was blocked',
    when: 'a card was blocked',
    example: { id: 'evt_01m81021bx6qw00rg95ar4afef', data: { card: BLOCKED_CARD } },
  },
  'topup.succeeded': {
    data: 'Topup',
    summary: 'A top-up succeeded',
    when: "a top-up's money is on the card, at once or after a 202",
    example: {
      id: 'evt_01m81020y7g6vd7dq2pvpyg63h',
      data: { topup: TOPUP, card: { ...CARD, balance: 7_500, available_balance: 7_500 } },
    },
  },
  'topup.failed': {
    data: 'Topup',
    summary: 'A top-up failed',
    when: 'a top-up that was accepted with 202 failed',
    example: {
      id: 'evt_01m81025g2hn4fgw0cz3v6k9pe',
      data: { topup: FAILED_TOPUP, card: { ...CARD, mode: 'live' } },
    },
  },
  'withdrawal.succeeded': {
    data: 'Withdrawal',
    summary: 'A withdrawal succeeded',
    when: "a withdrawal's money is in your balance, at once or after a 202",
    example: {
      id: 'evt_01m81021hz3t6w9b5q8d1y7rkc',
      data: { withdrawal: WITHDRAWAL, card: { ...CARD, balance: 3_000 } },
    },
  },
  'withdrawal.failed': {
    data: 'Withdrawal',
    summary: 'A withdrawal failed',
    when: 'a withdrawal that was accepted with 202 failed',
    example: {
      id: 'evt_01m81025r6n2e8x4v0a9s3zjtf',
      data: { withdrawal: FAILED_WITHDRAWAL, card: { ...CARD, mode: 'live' } },
    },
  },
  'card.transaction.created': {
    data: 'Transaction',
    summary: 'A purchase, a decline or a refund on a card',
    when: 'a purchase, decline or refund, simulated ones included',
    example: {
      id: 'evt_01m8102143jn4tsm29rv5e4ad4',
      data: { transaction: TRANSACTION, card: { ...CARD, balance: 6_250, available_balance: 6_250 } },
    },
  },
  'card.authorization.created': {
    data: 'Authorization',
    summary: 'A merchant asked for money on a card',
    when: 'a merchant asked for money: approved or declined',
    example: {
      id: 'evt_01m8102143jn4tsm29rv5e4ad5',
      data: { authorization: AUTHORIZATION, card: { ...CARD, available_balance: 3_750 } },
    },
  },
  'card.authorization.updated': {
    data: 'Authorization',
    summary: 'An authorization has changed',
    when: 'an authorization was incremented, cleared, reversed, or expired',
    example: {
      id: 'evt_01m810214vjn4tsm29rv5e4ad6',
      data: { authorization: EXPIRED_AUTHORIZATION, card: CARD },
    },
  },
  'deposit.confirmed': {
    data: 'Deposit',
    summary: 'A deposit was credited',
    when: 'we credited a deposit',
    example: { id: 'evt_01m81024zan2wj3v6g32rmxq3s', data: { deposit: CONFIRMED_DEPOSIT } },
  },
  'deposit.needs_review': {
    data: 'Deposit',
    summary: 'A deposit needs a review',
    when: 'something other than the one exact payment arrived for a deposit, and one of us has to look at it',
    example: { id: 'evt_01m81024zan2wj3v6g32rmxq3t', data: { deposit: DEPOSIT_IN_REVIEW } },
  },
  'deposit.expired': {
    data: 'Deposit',
    summary: 'A deposit has expired',
    when: 'nothing arrived for a deposit in time',
    example: { id: 'evt_01m810250zan2wj3v6g32rmxq3', data: { deposit: EXPIRED_DEPOSIT } },
  },
  'webhook_endpoint.failing': {
    data: 'WebhookEndpoint',
    summary: 'A webhook endpoint is failing',
    when: 'ten attempts in a row have failed at another of your endpoints; once until it succeeds again',
    example: { id: 'evt_01m8102bx0k6w3h9r5c2t7z4qd', data: { webhook_endpoint: FAILING_ENDPOINT } },
  },
  'webhook_endpoint.disabled': {
    data: 'WebhookEndpoint',
    summary: 'A webhook endpoint was disabled',
    when: 'another of your endpoints was disabled: by you, by us, or because it answered 410',
    example: { id: 'evt_01m8102c4n8v5d1j7b0x6y3mgh', data: { webhook_endpoint: DISABLED_ENDPOINT } },
  },
  'api_key.expiring': {
    data: 'ApiKey',
    summary: 'An API key will expire',
    when: 'seven days before an API key expires, or at once if that is nearer',
    example: { id: 'evt_01m81022ha2n6c8r4v0x3z7k5d', data: { api_key: EXPIRING_API_KEY } },
  },
  'balance.low': {
    data: 'Balance',
    summary: 'Your balance is low',
    when: 'your available balance fell below the threshold of your balance alert',
    example: {
      id: 'evt_01m81024zan2wj3v6g32rmxq4a',
      data: { balance: LOW_BALANCE, threshold: BALANCE_ALERT.threshold },
    },
  },
  'balance.recovered': {
    data: 'Balance',
    summary: 'Your balance has recovered',
    when: 'your available balance is at the threshold of your balance alert, or above it, again',
    example: {
      id: 'evt_01m81024zan2wj3v6g32rmxq4b',
      data: { balance: RECOVERED_BALANCE, threshold: BALANCE_ALERT.threshold },
    },
  },
  ping: {
    data: 'Ping',
    summary: 'You asked for a test event',
    when: 'you called `POST /webhook-endpoint/test`, or `test` of one of several',
    example: { id: 'evt_01m81021nat70kdkb07c1jg1dc', data: { webhook_endpoint: WEBHOOK_ENDPOINT } },
  },
} as const satisfies Record<EventType, AnyDeclared>;
