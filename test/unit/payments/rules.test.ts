import assert from 'node:assert/strict';
import { column } from '../../support/column.ts';
import { Ours } from '../../support/payments/history.ts';
import { IncreaseIssuer, type Issuer, LithicIssuer, MERCHANT } from '../../support/payments/issuers.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 1_440 * MINUTE_MS;

/** A payment on a card with this much, at an issuer. */
function open(issuer: Issuer, balanceCents = 10_000) {
  const ours = new Ours({ status: 'active', balanceCents, heldCents: 0, prepaidCents: 0 });
  /** The issuer's question about this much, with the name that it gives to it. */
  const question = (amountCents: number) => {
    const { named, asked } = issuer.name();
    return { named, put: () => ours.ask({ key: named, ...asked, amountCents, merchant: MERCHANT }) };
  };
  /** The issuer asks, and tells what it makes of the answer when it is read. */
  const ask = (cents: number, outcome: (said: boolean) => boolean = (said) => said) => {
    const { named, put } = question(cents);
    issuer.request(cents, outcome(put()), named);
  };
  const tell = () => ours.book(issuer.read().snapshot());
  const seen = () => {
    const { authorization } = ours.payment;
    const { status = null, amountCents = 0, heldCents = 0, settledCents = 0 } = authorization ?? {};
    return [status, amountCents, heldCents, settledCents];
  };
  const money = () => [ours.card.balanceCents, ours.card.heldCents, ours.card.prepaidCents];
  return { ours, question, ask, tell, seen, money };
}

/** A question without a name that the issuer would repeat when it tells of it. */
const askUnnamed = (ours: Ours, amountCents: number) =>
  ours.ask({ key: `asked ${amountCents}`, id: null, amountCents, merchant: MERCHANT });

for (const namesRequests of [true, false]) {
  const lithic = () => new LithicIssuer(namesRequests);
  describe(`a payment at Lithic, ${namesRequests ? 'with' : 'without'} event tokens`, () => {
    it('is paid by its hold, if request and clearing are one message', () => {
      const issuer = lithic();
      const { question, tell, seen, money } = open(issuer);
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
      const { ours, ask, tell, seen, money } = open(issuer, 5_000);
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
      const { ours, ask, tell, seen } = open(issuer, 5_000);
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
      const { ours, tell } = open(issuer);
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
      const { ask, tell, seen } = open(issuer);
      ask(100);
      issuer.clear(60, true);
      issuer.request(50, true, null);
      issuer.reverse(50);
      tell();
      assert.deepEqual(seen(), ['closed', 100, 0, 60]);
    });

    it('gives a late question the answer that the issuer has told', () => {
      const issuer = lithic();
      const { ours, question, tell, seen } = open(issuer);
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
      const { ours, ask, tell, seen } = open(issuer);
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
        const { ours, question, tell } = open(issuer, 100);
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
    const { ours, ask, tell, seen } = open(issuer);
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
    const { ask, tell, seen } = open(issuer);
    ask(100);
    issuer.clear(60, true);
    tell();
    assert.deepEqual(seen(), ['closed', 100, 0, 60]);
  });
});

describe('a decision of ours', () => {
  const isUntold = () => {
    const issuer = new LithicIssuer(true);
    const opened = open(issuer);
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
    const { ours, seen } = open(new LithicIssuer(false));
    askUnnamed(ours, 50);
    ours.book(null);
    assert.equal(seen()[2], 50);
    ours.nowMs += 10 * MINUTE_MS;
    ours.book(null);
    assert.deepEqual(seen(), ['reversed', 0, 0, 0]);
  });

  it('that was freed so is not the next one asked, which holds its amount once', () => {
    const { ours, ask, tell, seen } = open(new LithicIssuer(false));
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
    const { ours, ask, tell, seen } = open(new LithicIssuer(false));
    ask(100);
    // Another process books it, whose clock is behind.
    ours.nowMs -= 20 * MINUTE_MS;
    tell();
    tell();
    assert.deepEqual([seen(), ours.payment.requests.length], [['pending', 100, 100, 0], 1]);
  });

  it('counts less than the word of the issuer, both ways', () => {
    for (const said of [true, false]) {
      const { ours, ask, tell, seen } = open(new LithicIssuer(true), 200);
      ask(said ? 200 : 300, (ourWord) => !ourWord);
      tell();
      const expected = said ? ['reversed', 0, 0, 0] : ['pending', 300, 200, 0];
      assert.deepEqual([seen(), ours.declines], [expected, 1]);
    }
  });

  it('is what it was, once the issuer tells the request that it is, after another', () => {
    const issuer = new LithicIssuer(false);
    const { ours, tell, seen } = open(issuer);
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
    const { ours, tell, seen } = open(issuer);
    askUnnamed(ours, 50);
    issuer.request(52, true, null);
    tell();
    assert.deepEqual([seen(), ours.payment.requests.length], [['pending', 52, 52, 0], 1]);
  });

  describe('is never what the issuer told long before it,', () => {
    const later = (balanceCents?: number) => {
      const issuer = new LithicIssuer(false);
      const opened = open(issuer, balanceCents);
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

describe('a clearing', () => {
  it('is paid by the card, then by the prepaid balance, if nothing is held for it', () => {
    const issuer = new LithicIssuer(true);
    const { tell, money } = open(issuer, 100);
    issuer.force(130);
    tell();
    assert.deepEqual(money(), [0, 0, -30]);
  });

  it('on a blocked card takes what is held, and what becomes free goes to the prepaid balance', () => {
    const issuer = new LithicIssuer(true);
    const { ours, ask, tell, money } = open(issuer, 100);
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
    const { ask, tell, seen, money } = open(issuer, 100);
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
    const { ours, ask, tell, seen } = open(issuer);
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
