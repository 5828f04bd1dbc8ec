import assert from 'node:assert/strict';
import {
  type CardUse,
  makeAuthorization,
  makeDecline,
  makeExpiration,
  makeFinancial,
  makeFuelConfirmation,
  makeIncrement,
  makeRefund,
  makeReversal,
  makeSettlement,
} from '../../../../dev/increase/payment-objects.ts';
import { snapshotPayment } from '../../../../issuers/increase/snapshot.ts';
import { CardPayment, type HeldTransaction } from '../../../../issuers/increase/wire.ts';
import { inShort } from '../in-short.ts';

const EXPIRES_AT = '2026-01-09T00:00:00.000Z';
const use = (amount: number, more: Partial<CardUse> = {}): CardUse => ({
  amount,
  direction: 'settlement',
  processingCategory: 'purchase',
  merchant: {
    merchant_category_code: '5734',
    merchant_city: 'New York',
    merchant_country: 'US',
    merchant_descriptor: 'AMAZON.COM',
  },
  standInReason: null,
  ...more,
});
const REFUND = { direction: 'refund' } as const;

type Made = readonly [category: string, told: object];
const asked = (decisionId: string | null) => ({ actioner: 'user' as const, decisionId });
const authorization = (amount: number, decisionId: string | null = null, more: Partial<CardUse> = {}) =>
  makeAuthorization(use(amount, more), asked(decisionId), {
    paymentId: 'P',
    pendingTransactionId: more.direction === 'refund' ? null : 'hold1',
    expiresAt: EXPIRES_AT,
  });
const A = authorization(0);
const authorized = (...of: Parameters<typeof authorization>): Made => [
  'card_authorization',
  authorization(...of),
];
const increment = (amount: number, decisionId: string | null = null): Made => [
  'card_increment',
  makeIncrement(amount, asked(decisionId), { ...A, updatedAmount: 0 }),
];
const decline = (amount: number, decisionId: string | null = null, more: Partial<CardUse> = {}): Made => [
  'card_decline',
  makeDecline(use(amount, more), asked(decisionId), {
    paymentId: 'P',
    reason: 'insufficient_funds',
    decidedReason: null,
    incremented: null,
  }),
];
const reversal = (amount: number): Made => ['card_reversal', makeReversal(amount, 0, A)];
const expiration: Made = ['card_authorization_expiration', makeExpiration(100, A)];
const fuel = (amount: number): Made => ['card_fuel_confirmation', makeFuelConfirmation(amount, A)];
const settlement = (amount: number, isAuthorized = true): Made => [
  'card_settlement',
  makeSettlement(amount, use(amount), {
    paymentId: 'P',
    authorizationId: isAuthorized ? A.id : null,
    pendingTransactionId: isAuthorized ? 'hold1' : null,
  }),
];
const refund = (amount: number): Made => ['card_refund', makeRefund(amount, use(amount), 'P')];
const financial = (amount: number, decisionId: string | null, more: Partial<CardUse> = {}): Made => [
  'card_financial',
  makeFinancial(use(amount, more), asked(decisionId), 'P'),
];
const inEuros = ([category, told]: Made): Made => [category, { ...told, currency: 'EUR' }];

type Held = Pick<HeldTransaction, 'status' | 'held_amount'>;
const holds = (cents: number): Record<string, Held> => ({ hold1: { status: 'pending', held_amount: cents } });
const COMPLETE: Record<string, Held> = { hold1: { status: 'complete', held_amount: 0 } };

/** The ids of elements are e1, e2 … */
function snapshot(made: readonly Made[], pending: Record<string, Held> = {}) {
  const elements = made.map(([category, told], index) => ({
    category,
    created_at: '2026-01-02T00:00:00Z',
    [category]: { ...told, id: `e${index + 1}` },
  }));
  const payment = CardPayment.parse(
    JSON.parse(JSON.stringify({ id: 'P', card_id: 'C', created_at: '2026-01-02T00:00:00Z', elements })),
  );
  return snapshotPayment(payment, new Map(Object.entries(pending)));
}

const CASES: [
  title: string,
  made: Made[],
  pending: Record<string, Held>,
  expected: Partial<ReturnType<typeof inShort>>,
][] = [
  [
    'requests under the ids of the decisions that we were asked for, or under their own',
    [authorized(100, 'd1'), increment(20), decline(50, 'd2'), decline(7), increment(5, 'd3')],
    holds(125),
    {
      requests: ['d1 100 yes us', 'e2 20 yes network', 'd2 50 no us', 'e4 7 no network', 'd3 5 yes us'],
      state: [125, 125, null],
    },
  ],
  [
    'nothing of what holds and takes nothing',
    [
      authorized(100, null, REFUND),
      reversal(50),
      fuel(30),
      authorized(0),
      decline(0),
      decline(9, null, REFUND),
    ],
    {},
    { requests: [], state: [0, 0, 'reversal'], unreadable: [] },
  ],
  [
    'a reversal, and then of more than is left',
    [authorized(100), reversal(30), settlement(60), reversal(50)],
    COMPLETE,
    { state: [60, 0, 'reversal'] },
  ],
  ['an expiration', [authorized(100), expiration], COMPLETE, { state: [100, 0, 'expiry'] }],
  ['a new total', [authorized(100), fuel(42)], holds(42), { state: [42, 42, null] }],
  ['a total of nothing', [authorized(100), fuel(0)], COMPLETE, { state: [0, 0, 'reversal'] }],
  [
    'a final settlement, which only its pending transaction tells',
    [authorized(100), settlement(60)],
    COMPLETE,
    { movements: ['e2 clearing 60 held'], state: [100, 0, 'clearing'] },
  ],
  ['a partial one', [authorized(100), settlement(60)], holds(40), { state: [100, 40, 'clearing'] }],
  [
    'a hold that is newer than what was listed',
    [authorized(100), increment(20)],
    {},
    { state: [120, 120, null] },
  ],
  [
    'settlements and refunds without an authorization',
    [settlement(60, false), refund(20)],
    {},
    { requests: [], movements: ['e1 clearing 60 forced', 'e2 refund 20 forced e1'], state: [0, 0, null] },
  ],
  [
    'a purchase in one message that we were asked for: it takes what the decision holds',
    [financial(80, 'd1')],
    {},
    {
      requests: ['d1 80 yes us'],
      movements: ['e1 clearing 80 held'],
      state: [80, 0, 'clearing'],
    },
  ],
  [
    'single messages that nobody was asked for',
    [financial(80, null), financial(30, 'd1', REFUND)],
    {},
    { requests: [], movements: ['e1 clearing 80 forced', 'e2 refund 30 forced e1'], state: [0, 0, null] },
  ],
  [
    'nothing of what has no money',
    [['card_balance_inquiry', {}] as const, ['card_validation', {}] as const],
    {},
    { requests: [], movements: [], unreadable: [] },
  ],
  [
    'what we do not know, for a person',
    [['card_chargeback', { amount: 12, currency: 'USD' }] as const, settlement(1)],
    {},
    { movements: ['e2 clearing 1 held'], unreadable: ['e1 card_chargeback 12 USD'] },
  ],
  [
    'words that can be stored, whatever the network writes',
    [['card_\0', { amount: 12, currency: 'U\ud800D' }] as const],
    {},
    { unreadable: ['e1 card_? 12 U?D'] },
  ],
  [
    'what is in another currency, for a person',
    [authorized(100), inEuros(settlement(60))],
    holds(100),
    { movements: [], state: [100, 100, null], unreadable: ['e2 card_settlement 60 EUR'] },
  ],
  [
    'no hold in cents, if it is in another currency',
    [inEuros(authorized(100))],
    holds(100),
    { requests: [], state: [0, null, null], unreadable: ['e1 card_authorization 100 EUR'] },
  ],
  [
    'an element of a shape that we do not know, and the others all the same',
    [authorized(100), ['card_settlement', { amount: 'much', currency: 'USD' }] as const, refund(5)],
    holds(100),
    { movements: ['e3 refund 5 forced'], unreadable: ['e2 card_settlement null USD'] },
  ],
];

describe("Increase's card payments as payments", () => {
  for (const [title, made, pending, expected] of CASES) {
    it(`have ${title}`, () => {
      const told = inShort(snapshot(made, pending));
      assert.deepEqual({ ...told, ...expected }, told);
    });
  }

  it('have the merchant, and what is latest of when they expire', () => {
    const { requests, expiresAt } = snapshot([authorized(100)], holds(100));
    const merchant = { name: 'AMAZON.COM', categoryCode: '5734', city: 'New York', country: 'US' };
    assert.deepEqual([requests[0]?.merchant, expiresAt], [merchant, EXPIRES_AT]);
  });

  it('grow with each element, and with each pending transaction that is complete', () => {
    const version = (made: Made[], pending: Record<string, Held>) => snapshot(made, pending).version;
    const made = [authorized(100), settlement(100)];
    assert.deepEqual(version(made.slice(0, 1), holds(100)), [1, 0]);
    assert.deepEqual(version(made, holds(100)), [2, 0]);
    assert.deepEqual(version(made, COMPLETE), [2, 1]);
  });
});
