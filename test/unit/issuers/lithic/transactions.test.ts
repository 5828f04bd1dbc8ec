import assert from 'node:assert/strict';
import {
  type EventAsked,
  type MerchantAsked,
  makeCard,
  makeEvent,
  makeTransaction,
} from '../../../../dev/lithic/objects.ts';
import { CountryCode } from '../../../../domain/merchant.ts';
import { readTransaction } from '../../../../issuers/lithic/transactions.ts';
import { Transaction } from '../../../../issuers/lithic/wire.ts';

const card = makeCard({}, new Date());

/** What a transaction with these events says, without what all its messages have. @param holdCents what Lithic still holds */
function told(events: EventAsked[], { holdCents = 0, merchant = {} as MerchantAsked } = {}) {
  const transaction = makeTransaction(card, merchant, new Date());
  transaction.amounts.hold.amount = holdCents;
  transaction.events = events.map((event, index) =>
    makeEvent({ token: `e${index + 1}`, ...event }, new Date()),
  );
  const messages = readTransaction(Transaction.parse(transaction));
  return messages.map(({ body, transaction: reported }) => {
    assert.ok(reported.whole !== null, reported.unreadable.join());
    assert.deepEqual(reported.networkCardId, card.token);
    const {
      networkCardId,
      networkPaymentId,
      merchant: _,
      ...said
    } = JSON.parse(Buffer.from(body).toString());
    assert.deepEqual([networkCardId, networkPaymentId], [card.token, transaction.token]);
    if ('networkAuthorizationId' in said && said.networkAuthorizationId !== null) {
      assert.equal(said.networkAuthorizationId, transaction.token);
      said.networkAuthorizationId = 'A';
    }
    return said;
  });
}

const of = (type: string, event: string, amountCents: number | null, more: object = {}) => ({
  type,
  networkTransactionId: event,
  amountCents,
  currency: 'USD',
  ...more,
});
const A = { networkAuthorizationId: 'A' };
const approved = (event: string, amountCents: number, approvalNumber: number) =>
  of('approval', event, amountCents, { ...A, approvalNumber });
const declined = (event: string, amountCents: number, requestNumber: number) =>
  of('decline', event, amountCents, { ...A, requestNumber });

describe("Lithic's transactions, in our words", () => {
  it('have an approval for each approved AUTHORIZATION, with its place among those of its amount', () => {
    assert.deepEqual(
      told([
        { type: 'AUTHORIZATION', amount: 1_000 },
        { type: 'AUTHORIZATION', amount: 250 },
        { type: 'AUTHORIZATION', amount: 250, result: 'INSUFFICIENT_FUNDS' },
        { type: 'AUTHORIZATION', amount: 250 },
      ]).filter(({ type }) => type === 'approval'),
      [approved('e1', 1_000, 1), approved('e2', 250, 1), approved('e4', 250, 2)],
    );
  });

  it('have a decline for each declined request, with its place among all requests of its amount', () => {
    assert.deepEqual(
      told([
        { type: 'AUTHORIZATION', amount: 250 },
        { type: 'AUTHORIZATION', amount: 250, result: 'INSUFFICIENT_FUNDS' },
        { type: 'AUTHORIZATION', amount: 100 },
        { type: 'FINANCIAL_AUTHORIZATION', amount: 40, result: 'DECLINED' },
        { type: 'AUTHORIZATION_ADVICE', amount: 250, result: 'FRAUD_ADVICE' },
        { type: 'AUTHORIZATION', amount: 250, result: 'DECLINED' },
      ]),
      [
        approved('e1', 250, 1),
        declined('e2', 250, 2),
        approved('e3', 100, 1),
        declined('e4', 40, 1),
        declined('e5', 250, 3),
        declined('e6', 250, 4),
      ],
    );
  });

  it('count what was approved without a message of its own: a FINANCIAL_AUTHORIZATION, but no new total', () => {
    assert.deepEqual(
      told([
        { type: 'FINANCIAL_AUTHORIZATION', amount: 100 },
        { type: 'AUTHORIZATION', amount: 100 },
        { type: 'AUTHORIZATION_ADVICE', amount: 100 },
        { type: 'AUTHORIZATION', amount: 100 },
      ]).filter(({ type }) => type === 'approval'),
      [approved('e2', 100, 2), approved('e4', 100, 3)],
    );
  });

  it('have the new total of an AUTHORIZATION_ADVICE', () => {
    assert.deepEqual(
      told([
        { type: 'AUTHORIZATION', amount: 100 },
        { type: 'AUTHORIZATION_ADVICE', amount: 4_200 },
      ]),
      [approved('e1', 100, 1), of('total', 'e2', 4_200, A)],
    );
  });

  it('have a reversal of everything for an AUTHORIZATION_ADVICE of nothing', () => {
    assert.deepEqual(
      told([
        { type: 'AUTHORIZATION', amount: 100 },
        { type: 'AUTHORIZATION_ADVICE', amount: 0 },
      ]),
      [approved('e1', 100, 1), of('reversal', 'e2', null, A)],
    );
  });

  it('have an approval for an AUTHORIZATION_ADVICE without an authorization, since Lithic approved it by itself', () => {
    assert.deepEqual(told([{ type: 'AUTHORIZATION_ADVICE', amount: 500 }]), [approved('e1', 500, 1)]);
  });

  it('have a decline for an AUTHORIZATION_ADVICE that says so', () => {
    assert.deepEqual(told([{ type: 'AUTHORIZATION_ADVICE', amount: 500, result: 'FRAUD_ADVICE' }]), [
      declined('e1', 500, 1),
    ]);
  });

  it('have reversals and expiries', () => {
    assert.deepEqual(
      told([
        { type: 'AUTHORIZATION', amount: 100 },
        { type: 'AUTHORIZATION_REVERSAL', amount: 30 },
        { type: 'AUTHORIZATION_EXPIRY', amount: 70 },
      ]),
      [approved('e1', 100, 1), of('reversal', 'e2', 30, A), of('expiry', 'e3', null, A)],
    );
  });

  it('have a clearing that is final once Lithic holds nothing any more, and only the last one then', () => {
    const first: EventAsked[] = [
      { type: 'AUTHORIZATION', amount: 100 },
      { type: 'CLEARING', amount: 60 },
    ];
    const second: EventAsked = { type: 'CLEARING', amount: 40 };
    const clearing = (event: string, cents: number, final: boolean) =>
      of('clearing', event, cents, { ...A, final });
    assert.deepEqual(told(first, { holdCents: 40 }).slice(1), [clearing('e2', 60, false)]);
    assert.deepEqual(told(first).slice(1), [clearing('e2', 60, true)]);
    assert.deepEqual(told([...first, second]).slice(1), [
      clearing('e2', 60, false),
      clearing('e3', 40, true),
    ]);
  });

  it('have a clearing without an authorization if nothing was approved before it', () => {
    const forced = (event: string) => of('clearing', event, 300, { networkAuthorizationId: null });
    assert.deepEqual(told([{ type: 'CLEARING', amount: 300 }]), [forced('e1')]);
    assert.deepEqual(
      told([
        { type: 'AUTHORIZATION', amount: 300, result: 'DECLINED' },
        { type: 'CLEARING', amount: 300 },
      ]).slice(1),
      [forced('e2')],
    );
  });

  it('have a clearing of its own hold for a FINANCIAL_AUTHORIZATION, since it was asked about and has moved the money', () => {
    assert.deepEqual(told([{ type: 'FINANCIAL_AUTHORIZATION', amount: 300 }]), [
      of('clearing', 'e1', 300, A),
    ]);
  });

  it('have a refund for a RETURN, a FINANCIAL_CREDIT_AUTHORIZATION and a clearing of a credit', () => {
    for (const type of ['RETURN', 'FINANCIAL_CREDIT_AUTHORIZATION', 'CLEARING'] as const) {
      assert.deepEqual(told([{ type, amount: 300, polarity: 'CREDIT' }]), [
        of('refund', 'e1', 300, { forced: true }),
      ]);
    }
  });

  it('have a clearing without an authorization for a RETURN_REVERSAL, so that it is never declined', () => {
    assert.deepEqual(
      told([
        { type: 'RETURN', amount: 300, polarity: 'CREDIT' },
        { type: 'RETURN_REVERSAL', amount: 300 },
      ]).slice(1),
      [of('clearing', 'e2', 300, { networkAuthorizationId: null })],
    );
  });

  it('say nothing about what moves no money', () => {
    const silent: EventAsked[][] = [
      [{ type: 'BALANCE_INQUIRY', amount: 0 }],
      [{ type: 'BALANCE_INQUIRY', amount: 500 }],
      [{ type: 'AUTHORIZATION', amount: 0 }],
      [{ type: 'AUTHORIZATION', amount: 0, result: 'DECLINED' }],
      [{ type: 'CREDIT_AUTHORIZATION', amount: 500, polarity: 'CREDIT' }],
      [{ type: 'CREDIT_AUTHORIZATION', amount: 500, polarity: 'CREDIT', result: 'DECLINED' }],
      [{ type: 'CREDIT_AUTHORIZATION_ADVICE', amount: 500, polarity: 'CREDIT' }],
      [
        { type: 'CREDIT_AUTHORIZATION', amount: 500, polarity: 'CREDIT' },
        { type: 'AUTHORIZATION_REVERSAL', amount: 500, polarity: 'CREDIT' },
      ],
      [{ type: 'AUTHORIZATION_EXPIRY', amount: 0 }],
      [{ type: 'CLEARING', amount: 500, result: 'DECLINED' }],
      [{ type: 'AUTHORIZATION_REVERSAL', amount: 500, result: 'ORIGINAL_NOT_FOUND' }],
    ];
    for (const events of silent) assert.deepEqual(told(events), [], JSON.stringify(events));
  });

  it('keep what needs a person: corrections, unknown types, and other currencies', () => {
    const kept = (event: object) => {
      const transaction = makeTransaction(card, {}, new Date());
      const made = makeEvent({ type: 'CLEARING', amount: 700, token: 'e1' }, new Date());
      transaction.events = [{ ...made, ...event }];
      return readTransaction(Transaction.parse(transaction)).map(({ transaction: reported }) => reported);
    };
    const euros = { amount: 700, conversion_rate: '1', currency: 'EUR' } as const;
    for (const event of [
      { type: 'CORRECTION_DEBIT' },
      { type: 'CORRECTION_CREDIT' },
      { type: 'SOMETHING_NEW' },
      { amounts: { cardholder: euros, merchant: euros, settlement: euros } },
    ]) {
      const [reported, ...others] = kept(event);
      assert.deepEqual(others, []);
      assert.equal(reported?.whole, null);
      assert.deepEqual([reported?.networkTransactionId, reported?.amountCents], ['e1', 700]);
    }
  });

  it('take the settlement amount, else the cardholder amount, whatever their signs', () => {
    const transaction = makeTransaction(card, {}, new Date());
    const event = makeEvent({ type: 'CLEARING', amount: 1, token: 'e1' }, new Date());
    event.amounts.cardholder.amount = -500;
    event.amounts.settlement = { amount: -480, currency: 'USD', conversion_rate: '1' };
    const cents = () => readTransaction(Transaction.parse(transaction))[0]?.transaction.amountCents;
    transaction.events = [event];
    assert.equal(cents(), 480);
    event.amounts.settlement = null;
    assert.equal(cents(), 500);
  });

  it('name the merchant, and its country as spending controls do', () => {
    const merchantOf = (merchant: MerchantAsked) => {
      const transaction = makeTransaction(card, merchant, new Date());
      transaction.events = [makeEvent({ type: 'CLEARING', amount: 1 }, new Date())];
      return readTransaction(Transaction.parse(transaction))[0]?.transaction.merchant;
    };
    assert.deepEqual(merchantOf({ descriptor: ' BAKERY ', mcc: '5462', city: 'WIEN', country: 'AUT' }), {
      name: 'BAKERY',
      categoryCode: '5462',
      city: 'WIEN',
      country: 'AT',
    });
    for (const [country, ours] of Object.entries({ QZZ: 'XK', ANT: 'AN' })) {
      assert.equal(merchantOf({ country })?.country, ours);
      assert.ok(CountryCode.safeParse(ours).success, `controls can name ${ours}`);
    }
    assert.equal(merchantOf({ country: 'XXX' })?.country, null);
    assert.equal(merchantOf({ descriptor: 'bell \u0007' })?.name, null);
  });

  it('know a country for each code, and none twice', async () => {
    const { toAlpha2 } = await import('../../../../issuers/lithic/countries.ts');
    const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ';
    const known: string[] = [];
    for (const a of letters)
      for (const b of letters)
        for (const c of letters) {
          const alpha2 = toAlpha2(a + b + c);
          if (alpha2 !== null) known.push(alpha2);
        }
    assert.equal(known.length, 251);
    assert.equal(new Set(known).size, 251);
    const names = new Intl.DisplayNames('en', { type: 'region', fallback: 'none' });
    for (const alpha2 of known) assert.ok(alpha2 === 'AN' || names.of(alpha2), alpha2);
    for (const [alpha3, alpha2] of [
      ['USA', 'US'],
      ['DEU', 'DE'],
      ['CHE', 'CH'],
      ['GBR', 'GB'],
      ['UKR', 'UA'],
      ['ROU', 'RO'],
    ] as const)
      assert.equal(toAlpha2(alpha3), alpha2);
  });
});
