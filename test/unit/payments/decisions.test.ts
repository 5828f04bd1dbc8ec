import assert from 'node:assert/strict';
import type { Ours } from '../../support/payments/history.ts';
import { LithicIssuer, MERCHANT } from '../../support/payments/issuers.ts';
import { openPayment } from '../../support/payments/opened.ts';

const MINUTE_MS = 60_000;

/** A question without a name that the issuer would repeat when it tells of it. */
const askUnnamed = (ours: Ours, amountCents: number) =>
  ours.ask({ key: `asked ${amountCents}`, id: null, amountCents, merchant: MERCHANT });

describe('a decision of ours', () => {
  const isUntold = () => {
    const issuer = new LithicIssuer(true);
    const opened = openPayment(issuer);
    opened.ask(100);
    opened.tell();
    const question = { key: 'lost', id: 'lost', amountCents: 50, merchant: MERCHANT };
    opened.ours.ask(question);
    return { issuer, ...opened };
  };

  it('holds its amount until the issuer could have told it, then a read that lacks it frees it', () => {
    const { issuer, ours, tell, seen } = isUntold();
    assert.deepEqual(seen(), ['pending', 150, 150, 0]);
    ours.nowMs += 9 * MINUTE_MS;
    tell();
    assert.equal(seen()[2], 150, 'it may still be told');
    ours.nowMs += 2 * MINUTE_MS;
    ours.book(issuer.read().snapshot(), false);
    assert.equal(seen()[2], 150, 'a post is no read');
    tell();
    assert.deepEqual(seen(), ['pending', 100, 100, 0]);
    issuer.request(50, true, 'lost');
    tell();
    assert.deepEqual(seen(), ['pending', 150, 150, 0], 'told after all');
  });

  it('is freed, too, if the issuer has no such payment', () => {
    const { ours, seen } = openPayment(new LithicIssuer(false));
    askUnnamed(ours, 50);
    ours.book(null);
    assert.equal(seen()[2], 50);
    ours.nowMs += 10 * MINUTE_MS;
    ours.book(null);
    assert.deepEqual(seen(), ['reversed', 0, 0, 0]);
  });

  it('that was freed so is not the next one asked, which holds its amount once', () => {
    const { ours, ask, tell, seen } = openPayment(new LithicIssuer(false));
    ask(100);
    ours.ask({ key: 'lost', id: null, amountCents: 50, merchant: MERCHANT });
    ours.nowMs += 11 * MINUTE_MS;
    tell();
    assert.deepEqual(seen(), ['pending', 100, 100, 0]);
    ask(50);
    tell();
    assert.deepEqual(seen(), ['pending', 150, 150, 0]);
    tell();
    assert.deepEqual(seen(), ['pending', 150, 150, 0]);
  });

  it('stays the request that was told of it, whatever clocks say', () => {
    const { ours, ask, tell, seen } = openPayment(new LithicIssuer(false));
    ask(100);
    // Another process books it, whose clock is behind.
    ours.nowMs -= 20 * MINUTE_MS;
    tell();
    tell();
    assert.deepEqual([seen(), ours.payment.requests.length], [['pending', 100, 100, 0], 1]);
  });

  it('counts less than the word of the issuer, both ways', () => {
    for (const said of [true, false]) {
      const { ours, ask, tell, seen } = openPayment(new LithicIssuer(true), 200);
      ask(said ? 200 : 300, (ourWord) => !ourWord);
      tell();
      const expected = said ? ['reversed', 0, 0, 0] : ['pending', 300, 200, 0];
      assert.deepEqual([seen(), ours.declines], [expected, 1]);
    }
  });

  it('is what it was, once the issuer tells the request that it is, after another', () => {
    const issuer = new LithicIssuer(false);
    const { ours, tell, seen } = openPayment(issuer);
    askUnnamed(ours, 50);
    issuer.request(400, true, null);
    tell();
    assert.deepEqual(seen(), ['pending', 400, 400, 0]);
    issuer.request(50, true, null);
    tell();
    assert.deepEqual([seen(), ours.payment.requests.length], [['pending', 450, 450, 0], 2]);
  });

  it('is the converted request that the issuer approved', () => {
    const issuer = new LithicIssuer(false);
    const { ours, tell, seen } = openPayment(issuer);
    askUnnamed(ours, 50);
    issuer.request(52, true, null);
    tell();
    assert.deepEqual([seen(), ours.payment.requests.length], [['pending', 52, 52, 0], 1]);
  });

  describe('is never what the issuer told long before it,', () => {
    const later = (balanceCents?: number) => {
      const issuer = new LithicIssuer(false);
      const opened = openPayment(issuer, balanceCents);
      const tellOf = (cents: number, isApproved: boolean) => {
        issuer.request(cents, isApproved, null);
        opened.tell();
      };
      const ask = (cents: number) => askUnnamed(opened.ours, cents);
      const askLater = (cents: number) => {
        opened.ours.nowMs += 20 * MINUTE_MS;
        return ask(cents);
      };
      return { ...opened, tellOf, ask, askLater };
    };

    it('so it holds its amount on top', () => {
      const { tellOf, askLater, tell, seen } = later();
      tellOf(80, true);
      askLater(50);
      tell();
      assert.deepEqual(seen(), ['pending', 130, 130, 0]);
      tellOf(50, true);
      assert.deepEqual(seen(), ['pending', 130, 130, 0]);
    });

    it('even if that was another one asked, converted', () => {
      const { tellOf, ask, askLater, tell, seen } = later();
      ask(50);
      tellOf(80, true);
      askLater(80);
      tell();
      assert.deepEqual(seen(), ['pending', 160, 160, 0]);
      tellOf(80, true);
      assert.deepEqual(seen(), ['pending', 160, 160, 0]);
    });

    it('so each of two declined is charged once', () => {
      const { ours, tellOf, askLater } = later(120);
      tellOf(100, true);
      tellOf(50, false);
      assert.equal(askLater(50), false);
      tellOf(50, false);
      assert.equal(ours.declines, 2);
    });
  });
});
