import fc from 'fast-check';
import type { Fault } from '../../dev/tron/faults.ts';
import type { Controls, Interval, Limit, Merchant } from './rules/controls.ts';
import type { Prices } from './rules/prices.ts';

/** What fast-check draws for one operation. Its meaning depends on the card it is used on. */
export interface Draw {
  kind: (typeof KINDS)[number];
  cents: number;
  /** The amount's last two digits, if it funds a card. */
  digits: number;
  pick: number;
  /** Whether it is sent twice at the same time, if that is one operation. */
  twice: boolean;
  merchant: Merchant;
  /** Of the card, if it is issued or they are changed. */
  controls: Controls | null;
}

const KINDS = [
  ...['purchase', 'purchase', 'purchase', 'purchase', 'purchase', 'decline', 'refund', 'refund'],
  ...['top_up', 'top_up', 'top_up', 'top_up', 'freeze', 'freeze', 'unfreeze', 'unfreeze', 'block'],
  ...[
    'authorize',
    'authorize',
    'authorize',
    'authorize',
    'increment',
    'increment',
    'clear',
    'clear',
    'clear',
  ],
  ...['clear', 'reverse', 'reverse', 'expire', 'lapse', 'withdraw', 'withdraw', 'withdraw', 'control'],
  ...['read', 'read', 'again', 'again', 'altered', 'foreign'],
] as const;

/** One client with one card. Its steps come one after the other, and the operations of a step at the same time. */
export interface Lane {
  partner: number;
  mode: 'test' | 'live';
  card: 'new' | 'existing';
  issue: Draw;
  steps: Draw[][];
}

export interface DepositDraw {
  kind: (typeof DEPOSIT_KINDS)[number];
  /** The amount, if it is not the exact amount that is paid. */
  micro: number;
  pick: number;
}

const DEPOSIT_KINDS = [
  ...['exact', 'exact', 'exact', 'twice', 'pair', 'halves', 'other', 'other', 'dust', 'dust', 'nothing'],
  ...['credited', 'credited', 'credited', 'returned', 'returned', 'test_key'],
] as const;

/** One client with one deposit, at the same time as those with cards. */
export interface DepositLane {
  partner: number;
  deposit: 'new' | 'existing';
  pick: number;
  cents: number;
  /** Whether the address is requested twice at the same time. */
  twice: boolean;
  steps: DepositDraw[][];
}

/** What the chain's first node does in a round instead of answering, at every so many-th call. */
interface NodeTrouble {
  rule: { fault: Fault; every: number };
  lagBlocks: number;
}

/** Credits and debits of the balance at the same time as the cards' operations. */
export interface Funding {
  partner: number;
  mode: 'test' | 'live';
  kind: 'faucet' | 'adjust';
  /** Negative for a debit. */
  cents: number;
  twice: boolean;
}

export interface Round {
  lanes: Lane[];
  funding: Funding[];
  deposits: DepositLane[];
  trouble: NodeTrouble | null;
  /** What each partner pays from this round on; null: no change. */
  prices: (Prices | null)[];
  /** The spending controls of each partner from this round on; undefined: no change. */
  controls: (Controls | null | undefined)[];
  /** How many answers the round's clients get before a process is killed. */
  killAfterAnswers: number;
}

export interface Script {
  rounds: Round[];
  startCents: number[];
}

const PARTNERS = 3;

const cents = fc.oneof(
  { weight: 12, arbitrary: fc.integer({ min: 500, max: 40_000 }) },
  { weight: 2, arbitrary: fc.integer({ min: 1, max: 500 }) },
  { weight: 1, arbitrary: fc.integer({ min: 60_000, max: 1_200_000 }) },
);
/** Any two digits, and often those that the simulated network reacts to. With 47, it waits for an operator. */
const digits = fc.oneof(
  { weight: 12, arbitrary: fc.nat(40) },
  { weight: 12, arbitrary: fc.constantFrom(41, 42, 42, 43, 44, 45, 46, 48) },
  { weight: 1, arbitrary: fc.constant(47) },
);
const sometimes = fc.nat(9).map((ninth) => ninth === 0);
const mode = fc.constantFrom('test', 'test', 'live' as const) as fc.Arbitrary<'test' | 'live'>;
const partner = fc.nat(PARTNERS - 1);

const CATEGORIES = ['5411', '5812', '7995'];
const COUNTRIES = ['AT', 'BR', 'US'];

const merchant: fc.Arbitrary<Merchant> = fc.record({
  name: fc.constantFrom('Café', null),
  category_code: fc.constantFrom(...CATEGORIES, null),
  city: fc.constantFrom('Vienna', null),
  country: fc.constantFrom(...COUNTRIES, null),
});

/** Codes that are allowed or blocked; most of the time neither. */
const codes = (all: string[]): fc.Arbitrary<{ allowed: string[] | null; blocked: string[] | null }> =>
  fc.oneof(
    { weight: 8, arbitrary: fc.constant({ allowed: null, blocked: null }) },
    {
      weight: 1,
      arbitrary: fc.shuffledSubarray(all, { minLength: 2 }).map((allowed) => ({ allowed, blocked: null })),
    },
    { weight: 1, arbitrary: fc.constantFrom(...all).map((code) => ({ allowed: null, blocked: [code] })) },
  );

const limit: fc.Arbitrary<Limit> = fc.record({
  amount: fc.integer({ min: 2_000, max: 40_000 }),
  interval: fc.constantFrom<Interval>(
    ...(['per_authorization', 'daily', 'weekly', 'monthly', 'yearly', 'all_time'] as const),
  ),
  categories: fc.option(fc.shuffledSubarray(CATEGORIES, { minLength: 1 }), { freq: 1, nil: null }),
});

const controls: fc.Arbitrary<Controls | null> = fc
  .record({
    categories: codes(CATEGORIES),
    countries: codes(COUNTRIES),
    limits: fc.uniqueArray(limit, { maxLength: 3, selector: ({ amount }) => amount }),
  })
  .map(({ categories, countries, limits }) => {
    const drawn: Controls = {
      allowed_categories: categories.allowed,
      blocked_categories: categories.blocked,
      allowed_merchant_countries: countries.allowed,
      blocked_merchant_countries: countries.blocked,
      spending_limits: limits.length > 0 ? limits : null,
    };
    return Object.values(drawn).every((control) => control === null) ? null : drawn;
  });

const draw: fc.Arbitrary<Draw> = fc.record({
  kind: fc.constantFrom(...KINDS),
  cents,
  digits,
  pick: fc.nat(1_000_000),
  twice: sometimes,
  merchant,
  controls,
});

const several = <T>(arbitrary: fc.Arbitrary<T>, count: number): fc.Arbitrary<T[]> =>
  fc.array(arbitrary, { minLength: count, maxLength: count });

const CONFLICTS: (readonly Draw['kind'][])[] = [
  ['top_up', 'block'],
  ['top_up', 'top_up'],
  ['top_up', 'freeze'],
  ['purchase', 'block'],
  ['freeze', 'block'],
  ['freeze', 'unfreeze'],
  ['purchase', 'purchase'],
  ['refund', 'block'],
  ['authorize', 'authorize'],
  ['authorize', 'withdraw'],
  ['authorize', 'control'],
  ['increment', 'clear'],
  ['clear', 'clear'],
  ['clear', 'reverse'],
  ['clear', 'expire'],
  ['clear', 'block'],
  ['reverse', 'block'],
  ['withdraw', 'withdraw'],
  ['withdraw', 'block'],
  ['withdraw', 'purchase'],
];

const conflict = fc
  .tuple(fc.constantFrom(...CONFLICTS), several(draw, 2))
  .map(([kinds, draws]) => draws.map((drawn, index) => ({ ...drawn, kind: kinds[index] ?? drawn.kind })));

const step = fc.oneof(
  { weight: 6, arbitrary: several(draw, 1) },
  { weight: 3, arbitrary: several(draw, 2) },
  { weight: 1, arbitrary: several(draw, 3) },
  { weight: 2, arbitrary: conflict },
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

const depositDraw: fc.Arbitrary<DepositDraw> = fc.record({
  kind: fc.constantFrom(...DEPOSIT_KINDS),
  micro: fc.integer({ min: 1, max: 1_000_000_000 }),
  pick: fc.nat(1_000_000),
});

const depositLane: fc.Arbitrary<DepositLane> = fc.record({
  partner,
  deposit: fc.constantFrom('new', 'existing'),
  pick: fc.nat(1_000_000),
  cents: fc.oneof(fc.integer({ min: 100, max: 50_000 }), fc.integer({ min: 100, max: 110 })),
  twice: sometimes,
  steps: fc
    .integer({ min: 0, max: 3 })
    .chain((count) =>
      several(
        fc.oneof(
          { weight: 2, arbitrary: several(depositDraw, 1) },
          { weight: 1, arbitrary: several(depositDraw, 2) },
        ),
        count,
      ),
    ),
});

const trouble: fc.Arbitrary<NodeTrouble> = fc.record({
  rule: fc.record({
    fault: fc.constantFrom<Fault>(
      ...(['empty list', 'empty object', 'overloaded', 'lite', 'forbidden', 'rate limited'] as const),
      ...(['internal error', 'truncated', 'disconnect'] as const),
    ),
    every: fc.integer({ min: 1, max: 4 }),
  }),
  lagBlocks: fc.constantFrom(0, 0, 2, 10),
});

/** Half of the draws are zero, which leaves a fee out. */
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
  depositLanes: number;
}

export function scripts(size: ScriptSize): fc.Arbitrary<Script> {
  const round: fc.Arbitrary<Round> = fc.record({
    lanes: several(lane, size.lanes),
    funding: several(funding, 4),
    deposits: several(depositLane, size.depositLanes),
    trouble: fc.option(trouble, { freq: 1, nil: null }),
    prices: several(fc.option(prices, { freq: 2, nil: null }), PARTNERS),
    controls: several(
      fc.oneof(
        { weight: 2, arbitrary: fc.constant(undefined) },
        { weight: 1, arbitrary: fc.constant(null) },
        { weight: 1, arbitrary: controls },
      ),
      PARTNERS,
    ),
    killAfterAnswers: fc.integer({ min: 1, max: 60 }),
  });
  return fc.record({
    rounds: several(round, size.rounds),
    startCents: several(fc.integer({ min: 100_000, max: 600_000 }), PARTNERS),
  });
}
