import fc from 'fast-check';
import type { Prices } from './rules/prices.ts';

/** What fast-check draws for one operation; what it means depends on the card it meets. */
export interface Draw {
  kind: (typeof KINDS)[number];
  cents: number;
  /** Its last two digits, where it funds a card. */
  digits: number;
  pick: number;
  /** Asked twice at the same time, where that is one operation. */
  twice: boolean;
}

const KINDS = [
  ...['purchase', 'purchase', 'purchase', 'purchase', 'purchase', 'decline', 'refund', 'refund'],
  ...['top_up', 'top_up', 'top_up', 'top_up', 'freeze', 'freeze', 'unfreeze', 'unfreeze', 'block'],
  ...['read', 'again', 'again', 'altered', 'foreign'],
] as const;

/** One client: its steps come one after the other, the operations of one step at the same time, all on one card. */
export interface Lane {
  partner: number;
  mode: 'test' | 'live';
  card: 'new' | 'existing';
  issue: Draw;
  steps: Draw[][];
}

/** Money that comes and goes beside the cards. */
export interface Funding {
  partner: number;
  mode: 'test' | 'live';
  kind: 'faucet' | 'adjust';
  /** Below zero a debit. */
  cents: number;
  twice: boolean;
}

export interface Round {
  lanes: Lane[];
  funding: Funding[];
  /** What the partners pay from this round on, where it changes. */
  prices: (Prices | null)[];
  /** When something is killed, after the round's start. */
  killAfterMs: number;
}

export interface Script {
  rounds: Round[];
  /** What partners begin with, in either mode. */
  startCents: number[];
}

export const PARTNERS = 3;

const cents = fc.oneof(
  { weight: 12, arbitrary: fc.integer({ min: 500, max: 40_000 }) },
  { weight: 2, arbitrary: fc.integer({ min: 1, max: 500 }) },
  { weight: 1, arbitrary: fc.integer({ min: 60_000, max: 1_200_000 }) },
);
/** Any two, and those that the simulated network knows; it takes the last one until an operator speaks. */
const digits = fc.oneof(
  { weight: 12, arbitrary: fc.nat(40) },
  { weight: 12, arbitrary: fc.constantFrom(41, 42, 42, 43, 44, 45, 46, 48) },
  { weight: 1, arbitrary: fc.constant(47) },
);
const sometimes = fc.nat(9).map((ninth) => ninth === 0);
const mode = fc.constantFrom('test', 'test', 'live' as const) as fc.Arbitrary<'test' | 'live'>;
const partner = fc.nat(PARTNERS - 1);

const draw: fc.Arbitrary<Draw> = fc.record({
  kind: fc.constantFrom(...KINDS),
  cents,
  digits,
  pick: fc.nat(1_000_000),
  twice: sometimes,
});

const several = <T>(arbitrary: fc.Arbitrary<T>, count: number): fc.Arbitrary<T[]> =>
  fc.array(arbitrary, { minLength: count, maxLength: count });

/** What gets in each other's way. */
const CONFLICTS: (readonly Draw['kind'][])[] = [
  ...([
    ['top_up', 'block'],
    ['top_up', 'top_up'],
    ['top_up', 'freeze'],
    ['purchase', 'block'],
  ] as const),
  ...([
    ['freeze', 'block'],
    ['freeze', 'unfreeze'],
    ['purchase', 'purchase'],
    ['refund', 'block'],
  ] as const),
];

const conflict = fc
  .tuple(fc.constantFrom(...CONFLICTS), several(draw, 2))
  .map(([kinds, draws]) => draws.map((drawn, index) => ({ ...drawn, kind: kinds[index] ?? drawn.kind })));

const step = fc.oneof(
  { weight: 6, arbitrary: several(draw, 1) },
  { weight: 3, arbitrary: several(draw, 2) },
  { weight: 1, arbitrary: several(draw, 3) },
  { weight: 1, arbitrary: conflict },
);

const lane: fc.Arbitrary<Lane> = fc.record({
  partner,
  mode,
  card: fc.constantFrom('new', 'existing', 'existing'),
  issue: draw,
  steps: fc.integer({ min: 2, max: 6 }).chain((count) => several(step, count)),
});

const funding: fc.Arbitrary<Funding> = fc.record({
  partner,
  mode,
  kind: fc.constantFrom('faucet', 'adjust'),
  cents: fc.oneof(fc.integer({ min: 1, max: 150_000 }), fc.integer({ min: -150_000, max: -1 })),
  twice: sometimes,
});

/** Zero, which leaves a fee out, is among them as often as all others. */
const upTo = (most: number) => fc.oneof(fc.constant(0), fc.integer({ min: 1, max: most }));
const prices: fc.Arbitrary<Prices> = fc.record({
  activationCents: upTo(300),
  fundingBasisPoints: upTo(700),
  fundingMinCents: upTo(200),
  transactionCents: upTo(40),
  transactionBasisPoints: upTo(300),
  declineCents: upTo(60),
});

export interface ScriptSize {
  rounds: number;
  lanes: number;
}

export function scripts(size: ScriptSize): fc.Arbitrary<Script> {
  const round: fc.Arbitrary<Round> = fc.record({
    lanes: several(lane, size.lanes),
    funding: several(funding, 4),
    prices: several(fc.option(prices, { freq: 2, nil: null }), PARTNERS),
    killAfterMs: fc.integer({ min: 100, max: 2_500 }),
  });
  return fc.record({
    rounds: several(round, size.rounds),
    startCents: several(fc.integer({ min: 100_000, max: 600_000 }), PARTNERS),
  });
}
