import assert from 'node:assert/strict';
import type { DeclineReason } from '../../../domain/authorization.ts';
import type { Asked, UnnamedSnapshot } from '../../../domain/payment.ts';
import { decideRequest } from '../../../payments/decision-rules.ts';
import type { CardMoney } from '../../../payments/money-rules.ts';
import {
  type Booking,
  type BookingTerms,
  bookPayment,
  type HandMade,
  NEW_PAYMENT,
  type Payment,
} from '../../../payments/rules.ts';
import { type AskedAs, IncreaseIssuer, type Issuer, LithicIssuer, MERCHANT, type Read } from './issuers.ts';

// A payment's life at an issuer, drawn from a list of numbers, and what we hear of it: late, twice, out of order, or not at all.

export const NETWORKS = {
  'Lithic with event tokens': () => new LithicIssuer(true),
  'Lithic without event tokens': () => new LithicIssuer(false),
  Increase: () => new IncreaseIssuer(),
} as const;

const START = Date.parse('2026-01-01T00:00:00Z');
const TTL_MS = 7 * 86_400_000;
const MINUTE_MS = 60_000;

export class Ours {
  payment: Payment = NEW_PAYMENT;
  readonly booked = new Set<string>();
  readonly handMade = new Map<string, HandMade>();
  nowMs = START;
  card: CardMoney;
  declines = 0;
  /** How often the card lacked what the network holds. */
  wasShort = false;

  constructor(card: CardMoney) {
    this.card = card;
  }

  book(snapshot: UnnamedSnapshot | null, isRead = true): Booking {
    const now = new Date(this.nowMs).toISOString();
    const terms: BookingTerms = {
      snapshot,
      readAt: isRead ? now : null,
      handMade: this.handMade,
      booked: this.booked,
      now,
      ttlMs: TTL_MS,
    };
    const wasHeldCents = this.payment.authorization?.heldCents ?? 0;
    const booking = bookPayment(this.payment, this.card, terms);
    let heldCents = wasHeldCents;
    for (const { amountCents, ofAuthorization, fromHoldCents } of booking.movements) {
      assert.equal(
        fromHoldCents,
        ofAuthorization ? Math.min(amountCents, heldCents) : 0,
        'its hold pays first',
      );
      heldCents -= fromHoldCents;
    }
    this.payment = booking.payment;
    for (const { id } of booking.movements) {
      assert.ok(!this.booked.has(id), 'a movement is booked once');
      this.booked.add(id);
    }
    this.declines += booking.declines.length;
    this.card = booking.card;
    const { authorization } = this.payment;
    if (authorization !== null && authorization.heldCents < authorization.targetCents) this.wasShort = true;
    assert.ok(this.card.heldCents >= 0 && this.card.balanceCents >= this.card.heldCents, 'held is covered');
    return booking;
  }

  /** Decides, which has to be booked. @returns why not; null if it is approved */
  decide(asked: Asked, holdsCents = asked.amountCents): DeclineReason | null {
    const { reason, payment } = decideRequest(this.payment, asked, {
      card: this.card,
      holdsCents,
      refusedByControls: null,
      now: new Date(this.nowMs).toISOString(),
    });
    this.payment = payment;
    return reason;
  }

  ask(asked: Asked): boolean {
    const reason = this.decide(asked);
    this.book(null, false);
    return reason === null;
  }

  block(): void {
    if (this.card.status === 'blocked') return;
    const freeCents = this.card.balanceCents - this.card.heldCents;
    this.card = { ...this.card, status: 'blocked' };
    this.release(freeCents);
  }

  /** Moves money off the card, as a withdrawal does. */
  release(cents: number): void {
    const { balanceCents, prepaidCents } = this.card;
    this.card = { ...this.card, balanceCents: balanceCents - cents, prepaidCents: prepaidCents + cents };
  }
}

/** Draws from a list of numbers, and zeros after its end. */
export class Draws {
  readonly #numbers: readonly number[];
  #place = 0;

  constructor(numbers: readonly number[]) {
    this.#numbers = numbers;
  }

  get isOver(): boolean {
    return this.#place >= this.#numbers.length;
  }

  below(bound: number): number {
    const number = this.#numbers[this.#place] ?? 0;
    this.#place += 1;
    return number % bound;
  }
}

/** A payment that its issuer decides by itself. @returns what there was to read after each step */
export function liveAlone(issuer: Issuer, draws: Draws): Read[] {
  const reads: Read[] = [];
  while (!draws.isOver) {
    const cents = 1 + draws.below(400);
    const what = draws.below(8);
    if (what < 3) issuer.request(cents, what > 0, null);
    else if (what === 3) issuer.reverse(cents);
    else if (what === 4) issuer.clear(cents, draws.below(2) === 0);
    else if (what === 5) issuer.refund(cents);
    else if (what === 6) issuer.total(cents);
    else issuer.force(cents);
    reads.push(issuer.read());
  }
  return reads;
}

/** Plays a payment to its end: everything is told, every element decided. */
export function play(network: keyof typeof NETWORKS, numbers: readonly number[]) {
  const draws = new Draws(numbers);
  const issuer: Issuer = NETWORKS[network]();
  const balanceCents = draws.below(4) === 0 ? 1_000 : 1_000_000;
  const ours = new Ours({ status: 'active', balanceCents, heldCents: 0, prepaidCents: 1_000_000 });
  const reads: Read[] = [];
  const asks: { named: string; cents: number; said: boolean; atMs: number; isDropped: boolean }[] = [];
  const hasNames = network !== 'Lithic without event tokens';
  let newest: Read | undefined;
  const late: (() => void)[] = [];
  const foreign: { id: string; cents: number }[] = [];
  let declined = 0;

  const ask = (named: string, asked: AskedAs, amountCents: number): boolean => {
    const said = ours.ask({ key: `asked ${named}`, ...asked, amountCents, merchant: MERCHANT });
    asks.push({ named, cents: amountCents, said, atMs: ours.nowMs, isDropped: false });
    return said;
  };
  /** Books what was read, and compares with what the issuer's books were at that time. */
  const hear = (read: Read | undefined, isRead: boolean) => {
    if (read === undefined) return;
    if (newest === undefined || reads.indexOf(read) > reads.indexOf(newest)) newest = read;
    const wasHeldCents = ours.payment.authorization?.heldCents ?? 0;
    const { movements } = ours.book(read.snapshot(), isRead);
    const { holdCents, told, foreign: unread } = newest;
    const { targetCents = 0, heldCents = 0 } = ours.payment.authorization ?? {};
    if (isRead && read === newest)
      for (const asked of asks)
        if (!told.has(asked.named) && asked.atMs <= ours.nowMs - 10 * MINUTE_MS) asked.isDropped = true;
    const untold = asks.filter(({ named, said, isDropped }) => said && !isDropped && !told.has(named));
    const expectedCents = holdCents + untold.reduce((sum, { cents }) => sum + cents, 0);
    if (unread.some((id) => !ours.handMade.has(id))) {
      const takenCents = movements.reduce((sum, { fromHoldCents }) => sum + fromHoldCents, 0);
      assert.ok(heldCents >= wasHeldCents - takenCents, 'nothing is freed while an element is undecided');
    } else if (hasNames) assert.equal(targetCents, expectedCents, 'it is what the newest read says');
    else assert.ok(targetCents <= expectedCents, 'it is no more than what the newest read says');
  };
  const decide = (id: string) => {
    const { cents } = foreign.splice(
      foreign.findIndex((one) => one.id === id),
      1,
    )[0] as { cents: number };
    const purchase = draws.below(3) > 0;
    ours.handMade.set(id, purchase ? { means: 'purchase', amountCents: cents } : { means: 'nothing' });
    if (purchase) issuer.movedCents += cents;
    ours.book(null, false);
  };
  const act = () => {
    const cents = 1 + draws.below(5) * 100 + draws.below(2);
    switch (draws.below(18)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4: {
        const { named, asked } = issuer.name();
        const how = draws.below(8);
        if (how === 7) {
          // It had no answer in time, and asks nobody any more: our answer comes after its own decision was told.
          const isApproved = draws.below(2) === 0;
          issuer.request(cents, isApproved, named);
          declined += isApproved ? 0 : 1;
          reads.push(issuer.read());
          if (draws.below(2) === 0) hear(reads.at(-1), true);
          late.push(() => {
            const isTold =
              asked.id !== null && ours.payment.requests.some(({ told }) => told?.id === asked.id);
            const said = ask(named, asked, cents);
            // Decided anew, it is a decline of ours.
            if (!isTold && !said && isApproved) declined += 1;
          });
          break;
        }
        const said = ask(named, asked, cents);
        // The answer was lost, and with it the request.
        if (how === 6) {
          declined += said ? 0 : 1;
          break;
        }
        // The issuer's own rules overrule us.
        const isApproved = how === 5 ? !said : said;
        issuer.request(cents, isApproved, named);
        declined += said && isApproved ? 0 : 1;
        break;
      }
      case 5:
        issuer.request(cents, true, null);
        break;
      case 6:
        issuer.request(cents, false, null);
        declined += 1;
        break;
      case 7: {
        const { named, asked } = issuer.name();
        const said = ask(named, asked, cents);
        if (said) issuer.single(cents, named);
        else {
          issuer.request(cents, false, named);
          declined += 1;
        }
        break;
      }
      case 8:
        issuer.total(cents);
        break;
      case 9:
        issuer.reverse(cents);
        break;
      case 10:
        issuer.expire();
        break;
      case 11:
      case 12:
        issuer.clear(cents, draws.below(2) === 0);
        break;
      case 13:
        issuer.force(cents);
        break;
      case 14:
        issuer.refund(cents);
        break;
      case 15:
        issuer.takeBack(cents);
        break;
      case 16:
        foreign.push({ id: issuer.clearInEuros(cents + 1), cents: cents + 2 });
        break;
      default: {
        const of = draws.below(4);
        if (of === 0) ours.block();
        else if (of === 1) ours.release(Math.min(cents, ours.card.balanceCents - ours.card.heldCents));
        else if (of === 2 && ours.card.status === 'active') ours.card = { ...ours.card, status: 'frozen' };
        else if (ours.card.status === 'frozen') ours.card = { ...ours.card, status: 'active' };
      }
    }
  };

  while (!draws.isOver) {
    act();
    reads.push(issuer.read());
    // What is heard of it: nothing, the newest, or any earlier one.
    const heard = draws.below(4);
    if (heard === 1) hear(reads.at(-1), draws.below(2) === 0);
    if (heard === 2) hear(reads[draws.below(reads.length)], false);
    if (heard === 3) {
      late.shift()?.();
      const told = ours.payment.said.unreadable.find(({ id }) => !ours.handMade.has(id));
      if (told !== undefined && draws.below(2) === 0) decide(told.id);
    }
    ours.nowMs += draws.below(3) * 1_000;
    if (draws.below(4) === 0 && late.length === 0) {
      // It is read by itself once the issuer should have told all that we approved.
      ours.nowMs += 20 * MINUTE_MS;
      hear(reads.at(-1), true);
    }
  }
  for (const decideLate of late) decideLate();
  reads.push(issuer.read());
  hear(reads.at(-1), true);
  const last = issuer.read().snapshot();
  for (const { id } of [...foreign]) decide(id);
  ours.nowMs += 11 * MINUTE_MS;
  ours.book(last);
  return { issuer, ours, last, initialCents: balanceCents + 1_000_000, declined, hasNames };
}

export type Played = ReturnType<typeof play>;
