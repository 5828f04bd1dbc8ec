import assert from 'node:assert/strict';
import { type EventAsked, makeCard, makeEvent, makeTransaction } from '../../../../dev/lithic/objects.ts';
import type { PaymentSnapshot } from '../../../../domain/payment.ts';
import { snapshotTransaction } from '../../../../issuers/lithic/snapshot.ts';
import { Transaction } from '../../../../issuers/lithic/wire.ts';
import { inShort } from '../in-short.ts';

const NOW = new Date('2026-01-02T03:04:05.678Z');
const card = makeCard({}, NOW);

/** @param hold what Lithic holds, in this currency */
function snapshot(events: EventAsked[], hold = 0, currency = 'USD'): PaymentSnapshot {
  const transaction = makeTransaction(card, {}, NOW);
  transaction.amounts.hold = { amount: hold, currency: currency as 'USD' };
  transaction.events = events.map((event, index) => makeEvent({ token: `e${index + 1}`, ...event }, NOW));
  return snapshotTransaction(Transaction.parse(JSON.parse(JSON.stringify(transaction))));
}

const inEuros = (event: EventAsked) => {
  const transaction = makeTransaction(card, {}, NOW);
  const made = makeEvent({ token: 'e1', ...event }, NOW);
  const amounts = { ...made.amounts, settlement: { ...made.amounts.cardholder, currency: 'EUR' as const } };
  transaction.events = [{ ...made, amounts } as typeof made];
  return snapshotTransaction(Transaction.parse(transaction));
};

const of = (type: EventAsked['type'], amount: number, more: Partial<EventAsked> = {}): EventAsked => ({
  type,
  amount,
  ...more,
});
const A = (amount: number, more: Partial<EventAsked> = {}) => of('AUTHORIZATION', amount, more);
const CREDIT = { polarity: 'CREDIT' } as const;
const DECLINED = { result: 'DECLINED' } as const;

const CASES: [
  title: string,
  events: EventAsked[],
  hold: number,
  expected: Partial<ReturnType<typeof inShort>>,
][] = [
  [
    'each request, approved or declined, the first one as an authorization',
    [A(100), A(50, DECLINED), A(25)],
    125,
    {
      requests: ['e1 100 yes us', 'e2 50 no us', 'e3 25 yes us'],
      state: [125, 125, null],
    },
  ],
  [
    'an advice without an authorization, which nobody was asked for',
    [of('AUTHORIZATION_ADVICE', 70)],
    70,
    { requests: ['e1 70 yes network'], state: [70, 70, null] },
  ],
  [
    'an advice that was declined',
    [A(5), of('AUTHORIZATION_ADVICE', 70, DECLINED)],
    5,
    { requests: ['e1 5 yes us', 'e2 70 no network'] },
  ],
  [
    'a new total, which is no request',
    [A(100), of('AUTHORIZATION_ADVICE', 4_200)],
    4_200,
    { requests: ['e1 100 yes us'], state: [4_200, 4_200, null] },
  ],
  [
    'a total of nothing, which gives back all that is not cleared',
    [A(100), of('CLEARING', 30), of('AUTHORIZATION_ADVICE', 0)],
    0,
    { movements: ['e2 clearing 30 held'], state: [30, 0, 'reversal'] },
  ],
  [
    'a reversal of a part, and of more than is left',
    [A(100), of('AUTHORIZATION_REVERSAL', 30), of('CLEARING', 60), of('AUTHORIZATION_REVERSAL', 50)],
    0,
    { state: [60, 0, 'reversal'] },
  ],
  ['an expiry', [A(100), of('AUTHORIZATION_EXPIRY', 100)], 0, { state: [100, 0, 'expiry'] }],
  [
    'clearings of an authorization, whatever it still holds',
    [A(100), of('CLEARING', 60), of('CLEARING', 40)],
    0,
    { movements: ['e2 clearing 60 held', 'e3 clearing 40 held'], state: [100, 0, 'clearing'] },
  ],
  [
    'a clearing without an authorization',
    [of('CLEARING', 60)],
    0,
    { requests: [], movements: ['e1 clearing 60 forced'], state: [0, 0, null] },
  ],
  [
    'a purchase in one message: a request, and the clearing that takes its hold, under one token',
    [of('FINANCIAL_AUTHORIZATION', 80)],
    0,
    {
      requests: ['e1 80 yes us'],
      movements: ['e1 clearing 80 held'],
      state: [80, 0, 'clearing'],
    },
  ],
  [
    'one that was declined moves nothing',
    [of('FINANCIAL_AUTHORIZATION', 80, DECLINED)],
    0,
    { requests: ['e1 80 no us'], movements: [], state: [0, 0, null] },
  ],
  [
    'refunds, of the only clearing before them',
    [
      of('CLEARING', 60),
      of('RETURN', 20, CREDIT),
      of('CLEARING', 5, CREDIT),
      of('CLEARING', 1),
      of('RETURN', 2),
    ],
    0,
    {
      movements: [
        'e1 clearing 60 forced',
        'e2 refund 20 forced e1',
        'e3 refund 5 forced e1',
        'e4 clearing 1 forced',
        'e5 refund 2 forced',
      ],
    },
  ],
  [
    'a refund that is taken back',
    [of('RETURN', 20, CREDIT), of('RETURN_REVERSAL', 20)],
    0,
    { movements: ['e1 refund 20 forced', 'e2 refund_reversal 20 forced'] },
  ],
  [
    'nothing of what holds and moves nothing',
    [
      A(0),
      of('BALANCE_INQUIRY', 0),
      of('CREDIT_AUTHORIZATION', 70, CREDIT),
      of('CREDIT_AUTHORIZATION_ADVICE', 70, CREDIT),
      of('AUTHORIZATION_REVERSAL', 70, CREDIT),
      of('CLEARING', 9, DECLINED),
    ],
    -70,
    { requests: [], movements: [], state: [0, 0, null], unreadable: [] },
  ],
  [
    'no hold once money was authorized the other way',
    [A(100), of('CREDIT_AUTHORIZATION', 70, CREDIT)],
    30,
    { state: [100, 0, null] },
  ],
  [
    'a correction, which a person has to read',
    [of('CORRECTION_DEBIT', 12)],
    0,
    { movements: [], unreadable: ['e1 CORRECTION_DEBIT 12 USD'] },
  ],
  [
    'words that can be stored, whatever the network writes',
    [of('A\0\ud800' as 'CLEARING', 12)],
    0,
    { movements: [], unreadable: ['e1 A?? 12 USD'] },
  ],
];

describe("Lithic's transactions as payments", () => {
  for (const [title, events, hold, expected] of CASES) {
    it(`have ${title}`, () => {
      const told = inShort(snapshot(events, hold));
      assert.deepEqual({ ...told, ...expected }, told);
    });
  }

  it('holds the absolute value of what Lithic says, whose signs are mixed', () => {
    assert.equal(snapshot([A(1_000)], -1_000).heldCents, 1_000);
  });

  it('can have no hold in cents, if it is in another currency', () => {
    assert.equal(snapshot([A(100)], 90, 'EUR').heldCents, null);
  });

  it('leave what moved in another currency to a person, and a request in one too', () => {
    assert.deepEqual(inShort(inEuros(of('CLEARING', 60))).unreadable, ['e1 CLEARING 60 EUR']);
    const asked = inShort(inEuros(A(60)));
    assert.deepEqual([asked.requests, asked.unreadable], [[], ['e1 AUTHORIZATION 60 EUR']]);
  });

  it('have the merchant in our words, and a version that grows', () => {
    const { requests, version, expiresAt } = snapshot([A(1)], 1);
    const merchant = { name: 'COFFEE SHOP', categoryCode: '5812', city: 'NEW YORK', country: 'US' };
    assert.deepEqual(requests[0]?.merchant, merchant);
    assert.deepEqual([version, expiresAt], [[1, NOW.getTime()], null]);
  });

  it('are read however long they are', () => {
    const events = Array.from({ length: 2_000 }, () => of('RETURN', 1, CREDIT));
    assert.equal(snapshot(events).movements.length, 2_000);
  });
});
