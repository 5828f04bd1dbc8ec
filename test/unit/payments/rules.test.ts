import assert from 'node:assert/strict';
import { column } from '../../support/column.ts';
import { IncreaseIssuer, LithicIssuer, MERCHANT } from '../../support/payments/issuers.ts';
import { openPayment } from '../../support/payments/opened.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 1_440 * MINUTE_MS;

for (const namesRequests of [true, false]) {
  const lithic = () => new LithicIssuer(namesRequests);
  describe(`a payment at Lithic, ${namesRequests ? 'with' : 'without'} event tokens`, () => {
    it('is paid by its hold, if request and clearing are one message', () => {
      const issuer = lithic();
      const { question, tell, seen, money } = openPayment(issuer);
      const { named, put } = question(300);
      assert.ok(put());
      assert.deepEqual(seen(), ['pending', 300, 300, 0]);
      issuer.single(300, named);
      const { movements } = tell();
      assert.deepEqual(column(movements, 'fromHoldCents'), [300]);
      assert.deepEqual(seen(), ['closed', 300, 0, 300]);
      assert.deepEqual(money(), [9_700, 0, 0]);
    });

    it('takes its own hold when a person books its clearing, and frees the rest', () => {
      const issuer = lithic();
      const { ours, ask, tell, seen, money } = openPayment(issuer, 5_000);
      ask(5_000);
      const id = issuer.clearInEuros(5_000);
      tell();
      assert.deepEqual(seen(), ['pending', 5_000, 5_000, 0], 'nothing is freed before it is decided');
      ours.handMade.set(id, { means: 'purchase', amountCents: 4_800 });
      const { movements, declines } = tell();
      assert.deepEqual([movements.length, declines.length], [1, 0]);
      assert.deepEqual(seen(), ['closed', 5_000, 0, 4_800]);
      assert.deepEqual(money(), [200, 0, 0]);
    });

    it('frees its hold when a person says that nothing was bought', () => {
      const issuer = lithic();
      const { ours, ask, tell, seen } = openPayment(issuer, 5_000);
      ask(5_000);
      const id = issuer.clearInEuros(5_000);
      tell();
      ours.nowMs += 30 * DAY_MS;
      tell();
      assert.equal(seen()[2], 5_000, 'nor does it expire before');
      ours.handMade.set(id, { means: 'nothing' });
      tell();
      assert.deepEqual(seen(), ['reversed', 5_000, 0, 0]);
    });

    it('is booked once by hand, whatever words the issuer has for it later', () => {
      const issuer = lithic();
      const { ours, tell } = openPayment(issuer);
      const id = issuer.clearInEuros(700);
      const read = issuer.read().snapshot();
      ours.handMade.set(id, { means: 'purchase', amountCents: 800 });
      assert.equal(ours.book(read).movements.length, 1);
      const [element] = read.unreadable;
      assert.ok(element !== undefined);
      const version = [9, 9];
      const unreadable = [{ ...element, what: 'CLEARING of something', amount: 1, currency: 'CHF' }];
      assert.deepEqual(ours.book({ ...read, version, unreadable }).movements, []);
      const { amountCents, ...movement } = { ...element, amountCents: 800, kind: 'clearing' as const };
      const now = { ...movement, amountCents, merchant: MERCHANT, ofAuthorization: false, refunds: null };
      assert.deepEqual(ours.book({ ...read, version, unreadable: [], movements: [now] }).movements, []);
      assert.equal(tell().movements.length, 0);
    });

    it('holds nothing once a stand-in after its final clearing is reversed', () => {
      const issuer = lithic();
      const { ask, tell, seen } = openPayment(issuer);
      ask(100);
      issuer.clear(60, true);
      issuer.request(50, true, null);
      issuer.reverse(50);
      tell();
      assert.deepEqual(seen(), ['closed', 100, 0, 60]);
    });

    it('gives a late question the answer that the issuer has told', () => {
      const issuer = lithic();
      const { ours, question, tell, seen } = openPayment(issuer);
      const { named, put } = question(300);
      issuer.request(300, false, named);
      assert.equal(tell().declines.length, 1);
      ours.nowMs += 9 * MINUTE_MS;
      assert.equal(put(), false);
      tell();
      assert.deepEqual([seen().slice(0, 3), ours.declines], [['declined', 300, 0], 1]);
    });

    it('keeps an approved increment, if an earlier final clearing is told late', () => {
      const issuer = lithic();
      const { ours, ask, tell, seen } = openPayment(issuer);
      ask(100);
      issuer.clear(60, true);
      const early = issuer.read().snapshot();
      ask(50);
      tell();
      assert.deepEqual(seen(), ['pending', 150, 50, 60]);
      ours.book(early);
      assert.deepEqual(seen(), ['pending', 150, 50, 60]);
    });

    it('is declined once, with one fee, whether we or the issuer decided first', () => {
      for (const isTold of [true, false]) {
        const issuer = lithic();
        const { ours, question, tell } = openPayment(issuer, 100);
        const { named, put } = question(300);
        if (isTold) {
          issuer.request(300, false, named);
          tell();
        }
        put();
        put();
        if (!isTold) issuer.request(300, false, named);
        tell();
        assert.equal(ours.declines, 1);
      }
    });
  });
}

describe('a payment at Increase', () => {
  it('keeps an approved increment, if an earlier total is told late', () => {
    const issuer = new IncreaseIssuer();
    const { ours, ask, tell, seen } = openPayment(issuer);
    ask(100);
    issuer.total(40);
    const early = issuer.read().snapshot();
    ask(60);
    tell();
    assert.deepEqual(seen(), ['pending', 100, 100, 0]);
    ours.book(early);
    assert.deepEqual(seen(), ['pending', 100, 100, 0]);
  });

  it('holds what its pending transactions do, not what its elements add up to', () => {
    const issuer = new IncreaseIssuer();
    const { ask, tell, seen } = openPayment(issuer);
    ask(100);
    issuer.clear(60, true);
    tell();
    assert.deepEqual(seen(), ['closed', 100, 0, 60]);
  });
});

describe('a clearing', () => {
  it('is paid by the card, then by the prepaid balance, if nothing is held for it', () => {
    const issuer = new LithicIssuer(true);
    const { tell, money } = openPayment(issuer, 100);
    issuer.force(130);
    tell();
    assert.deepEqual(money(), [0, 0, -30]);
  });

  it('on a blocked card takes what is held, and what becomes free goes to the prepaid balance', () => {
    const issuer = new LithicIssuer(true);
    const { ours, ask, tell, money } = openPayment(issuer, 100);
    ask(80);
    tell();
    ours.block();
    assert.deepEqual(money(), [80, 80, 20]);
    issuer.clear(30, true);
    issuer.refund(10);
    tell();
    assert.deepEqual(money(), [0, 0, 80]);
  });

  it('of a declined request leaves it declined', () => {
    const issuer = new LithicIssuer(true);
    const { ask, tell, seen, money } = openPayment(issuer, 100);
    ask(300);
    issuer.clear(40, true);
    tell();
    assert.deepEqual(seen(), ['declined', 300, 0, 0]);
    assert.deepEqual(money(), [60, 0, 0]);
  });
});

describe('an authorization that has expired by our clock', () => {
  it('stays so, whatever the issuer holds, until that approves another request or names a later time', () => {
    const issuer = new IncreaseIssuer();
    const { ours, ask, tell, seen } = openPayment(issuer);
    ask(100);
    tell();
    ours.nowMs = Date.parse(issuer.expiresAt);
    tell();
    assert.deepEqual(seen(), ['expired', 100, 0, 0]);
    tell();
    assert.equal(seen()[2], 0);
    ours.book({ ...issuer.read().snapshot(), expiresAt: '2027-01-01T00:00:00.000Z' });
    assert.deepEqual(seen(), ['pending', 100, 100, 0]);
    ours.nowMs = Date.parse('2027-01-01T00:00:00.000Z');
    ours.book(null);
    assert.deepEqual(seen(), ['expired', 100, 0, 0]);
    issuer.request(30, true, null);
    tell();
    assert.deepEqual(seen(), ['pending', 130, 130, 0]);
    tell();
    assert.deepEqual(seen(), ['pending', 130, 130, 0]);
  });
});
