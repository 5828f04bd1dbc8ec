import assert from 'node:assert/strict';
import fc from 'fast-check';
import {
  foldMessage,
  NOTHING_FOLDED,
  type SimulatedMessage,
  snapshotFolded,
} from '../../../../issuers/simulated/fold.ts';
import { Ours } from '../../../support/payments/history.ts';
import { MERCHANT } from '../../../support/payments/issuers.ts';
import { propertyRuns } from '../../../support/property-runs.ts';

type Said = Partial<SimulatedMessage> & Pick<SimulatedMessage, 'type'>;

const message = (said: Said, id: string): SimulatedMessage => ({
  id,
  amountCents: null,
  isFinal: true,
  reason: null,
  merchant: MERCHANT,
  refunds: null,
  at: '2026-01-01T00:00:00.000Z',
  ...said,
});

/** The payment after these messages: what is authorized and held, and what ended it. */
function fold(...said: Said[]) {
  const messages = said.map((one, index) => message(one, `m${index + 1}`));
  const folded = messages.reduce(foldMessage, NOTHING_FOLDED);
  const { authorizedCents, heldCents, endedBy, version } = snapshotFolded(
    folded,
    messages.at(-1) as SimulatedMessage,
  );
  assert.deepEqual(version, [said.length]);
  return [authorizedCents, heldCents, endedBy];
}

const request = (amountCents: number, more: Partial<Said> = {}): Said => ({
  type: 'authorization',
  amountCents,
  ...more,
});
const more = (amountCents: number): Said => ({ type: 'increment', amountCents });
const clearing = (amountCents: number, isFinal = true): Said => ({ type: 'clearing', amountCents, isFinal });
const reversal = (amountCents: number | null = null): Said => ({ type: 'reversal', amountCents });
const expiry: Said = { type: 'expiry' };
const NO = { reason: 'card_frozen' } as const;

describe("the simulated network's messages, folded", () => {
  for (const [title, messages, expected] of [
    ['an authorization and an increment', [request(100), more(20)], [120, 120, null]],
    ['one that was declined holds nothing', [request(100, NO)], [0, 0, null]],
    ['a reversal of a part, then of the rest', [request(100), reversal(30), reversal()], [0, 0, 'reversal']],
    [
      'a reversal of more than is left gives back what is left',
      [request(100), reversal(130)],
      [0, 0, 'reversal'],
    ],
    ['an expiry leaves the amount', [request(100), expiry], [100, 0, 'expiry']],
    ['a partial clearing leaves the rest', [request(100), clearing(60, false)], [100, 40, null]],
    ['a final one leaves nothing', [request(100), clearing(60)], [100, 0, 'clearing']],
    [
      'a clearing before its request leaves what exceeds it',
      [clearing(60, false), request(100)],
      [100, 40, null],
    ],
    ['a final one before its request leaves nothing', [clearing(60), request(100)], [100, 0, 'clearing']],
    ['nor does one of as much', [clearing(100, false), request(100)], [100, 0, 'clearing']],
    [
      'once it has ended, it holds only what is approved from then on',
      [request(100), clearing(60), more(20)],
      [120, 20, null],
    ],
    [
      'what comes after the end changes nothing',
      [request(100), clearing(60), reversal(), expiry],
      [100, 0, 'clearing'],
    ],
    ['what ends an unknown one changes nothing', [reversal(), expiry, request(100)], [100, 100, null]],
  ] as [string, Said[], unknown[]][]) {
    it(title, () => assert.deepEqual(fold(...messages), expected));
  }

  it('name only the request or the movement of the message', () => {
    const of = (said: Said) => {
      const { requests, movements } = snapshotFolded(NOTHING_FOLDED, message(said, 'm'));
      return [requests.map(({ approved, reason }) => [approved, reason]), movements.map(({ kind }) => kind)];
    };
    assert.deepEqual(of(request(5)), [[[true, null]], []]);
    assert.deepEqual(of(request(5, NO)), [[[false, 'card_frozen']], []]);
    assert.deepEqual(of(request(0)), [[], []]);
    assert.deepEqual(of({ type: 'purchase', amountCents: 5 }), [[], ['clearing']]);
    assert.deepEqual(of({ type: 'purchase', amountCents: 5, ...NO }), [[[false, 'card_frozen']], []]);
    assert.deepEqual(of({ type: 'decline', amountCents: 5 }), [[[false, 'declined_by_network']], []]);
    assert.deepEqual(of({ type: 'refund', amountCents: 5 }), [[], ['refund']]);
  });

  it('are booked as books of our own say, in whatever order they come', () => {
    const drawn = fc.array(fc.tuple(fc.nat(9), fc.integer({ min: 1, max: 300 })), { maxLength: 30 });
    fc.assert(
      fc.property(drawn, fc.boolean(), (draws, isPoor) => {
        const balanceCents = isPoor ? 400 : 1_000_000;
        const ours = new Ours({ status: 'active', balanceCents, heldCents: 0, prepaidCents: 0 });
        let folded = NOTHING_FOLDED;
        // The books: what is held and moved, what is cleared before its request, and what was declined.
        let [held, moved, declined, early, isOver, isOpen] = [0, 0, 0, 0, false, false];
        for (const [index, [what, cents]] of draws.entries()) {
          const id = `m${index}`;
          if (what === 9 && cents < 40) ours.block();
          const type = (
            [
              'authorization',
              'increment',
              'increment',
              'clearing',
              'clearing',
              'reversal',
              'expiry',
              'refund',
            ] as const
          )[what % 8] as SimulatedMessage['type'];
          const isFinal = cents % 2 === 0;
          let said = message({ type, amountCents: cents, isFinal }, id);
          if (type === 'authorization' || type === 'increment') {
            const holdsCents = isOpen ? cents : isOver ? 0 : Math.max(0, cents - early);
            said = {
              ...said,
              reason: ours.decide({ key: id, id, amountCents: cents, merchant: MERCHANT }, holdsCents),
            };
            if (said.reason === null) {
              held += holdsCents;
              isOpen = held > 0;
              early = 0;
              isOver = !isOpen;
            } else declined += 1;
          } else if (type === 'clearing') {
            moved += cents;
            if (isOpen) held = isFinal ? 0 : Math.max(0, held - cents);
            else if (!isOver) early += cents;
            if (ours.payment.authorization === null || ours.payment.authorization.status === 'declined') {
              isOver ||= isFinal;
            } else if (held === 0) [isOpen, isOver] = [false, true];
          } else if (type === 'refund') moved -= cents;
          else if (isOpen) {
            held = type === 'expiry' ? 0 : held - Math.min(held, cents);
            if (held === 0) [isOpen, isOver] = [false, true];
          }
          folded = foldMessage(folded, said);
          const snapshot = snapshotFolded(folded, said);
          ours.book(snapshot);
          ours.book(snapshot);
          assert.equal(ours.payment.authorization?.targetCents ?? 0, held);
          assert.equal(ours.card.heldCents, held, 'it was decided by what the card has');
          assert.equal(ours.card.balanceCents + ours.card.prepaidCents, balanceCents - moved);
          assert.equal(ours.declines, declined);
          if (ours.card.status === 'blocked') assert.equal(ours.card.balanceCents, held);
        }
      }),
      { numRuns: propertyRuns(4_000) },
    );
  });
});
