/** What the card has, and what its authorization holds, before the operation. */
export const CARD_CENTS = 1_000;
export const HELD_CENTS = 300;

/** What an operation leaves. */
export interface Left {
  events: readonly string[];
  /** Balance and available balance of the card. */
  card: readonly [number, number];
  /** Status, amount, held and settled amount of the authorization; null without one. */
  authorization: readonly [string, number, number, number] | null;
  /** What the prepaid balance has paid: fees, and what the card lacks. Negative if it got back something. */
  paid: number;
  /** How many transactions the card has. */
  transactions: number;
}

const CREATED = 'card.authorization.created';
const UPDATED = 'card.authorization.updated';
const SETTLED = 'card.transaction.created';

const DECIDED: Record<'approved' | 'declined' | 'increased' | 'not increased', Left> = {
  approved: {
    events: [CREATED],
    card: [1_000, 700],
    authorization: ['pending', 300, 300, 0],
    paid: 0,
    transactions: 0,
  },
  declined: {
    events: [CREATED, SETTLED],
    card: [1_000, 1_000],
    authorization: ['declined', 1_001, 0, 0],
    paid: 25,
    transactions: 1,
  },
  increased: {
    events: [UPDATED],
    card: [1_000, 500],
    authorization: ['pending', 500, 500, 0],
    paid: 0,
    transactions: 0,
  },
  'not increased': {
    events: [SETTLED],
    card: [1_000, 700],
    authorization: ['pending', 300, 300, 0],
    paid: 25,
    transactions: 1,
  },
};

const ENDED: Record<'cleared' | 'cleared late' | 'cleared alone' | 'reversed' | 'expired', Left> = {
  cleared: {
    events: [UPDATED, SETTLED],
    card: [900, 700],
    authorization: ['pending', 300, 200, 100],
    paid: 11,
    transactions: 1,
  },
  'cleared late': {
    events: [UPDATED, SETTLED],
    card: [0, 0],
    authorization: ['closed', 300, 0, 1_500],
    paid: 500 + 18,
    transactions: 1,
  },
  'cleared alone': {
    events: [SETTLED],
    card: [900, 900],
    authorization: null,
    paid: 11,
    transactions: 1,
  },
  reversed: {
    events: [UPDATED],
    card: [1_000, 800],
    authorization: ['pending', 200, 200, 0],
    paid: 0,
    transactions: 0,
  },
  expired: {
    events: [UPDATED],
    card: [1_000, 1_000],
    authorization: ['expired', 300, 0, 0],
    paid: 0,
    transactions: 0,
  },
};

/** The hold of a blocked card's authorization goes to the prepaid balance. */
const EXPIRED_ON_BLOCKED: Left = { ...ENDED.expired, card: [0, 0], paid: -HELD_CENTS };

export interface Operation {
  /** What there is before. */
  before: 'nothing' | 'authorization' | 'authorization of a blocked card' | 'clearing';
  verb: string;
  body: object;
  left: Left;
}

export const TEST_OPERATIONS: Record<string, Operation> = {
  'an approval': { before: 'nothing', verb: 'authorizations', body: { amount: 300 }, left: DECIDED.approved },
  'a decline': { before: 'nothing', verb: 'authorizations', body: { amount: 1_001 }, left: DECIDED.declined },
  'a clearing without an authorization': {
    before: 'nothing',
    verb: 'force-capture',
    body: { amount: 100 },
    left: ENDED['cleared alone'],
  },
  'an increment': {
    before: 'authorization',
    verb: 'increment',
    body: { amount: 200 },
    left: DECIDED.increased,
  },
  'a declined increment': {
    before: 'authorization',
    verb: 'increment',
    body: { amount: 701 },
    left: DECIDED['not increased'],
  },
  'a clearing': {
    before: 'authorization',
    verb: 'capture',
    body: { amount: 100, final: false },
    left: ENDED.cleared,
  },
  'a clearing above the balance of the card': {
    before: 'authorization',
    verb: 'capture',
    body: { amount: 1_500 },
    left: ENDED['cleared late'],
  },
  'a reversal': { before: 'authorization', verb: 'reverse', body: { amount: 100 }, left: ENDED.reversed },
  'an expiry': { before: 'authorization', verb: 'expire', body: {}, left: ENDED.expired },
  'an expiry on a blocked card': {
    before: 'authorization of a blocked card',
    verb: 'expire',
    body: {},
    left: EXPIRED_ON_BLOCKED,
  },
};

export const LIVE_MESSAGES: Record<string, Operation> = {
  'an approval': {
    before: 'nothing',
    verb: 'authorization',
    body: { amountCents: 300 },
    left: DECIDED.approved,
  },
  'a decline': {
    before: 'nothing',
    verb: 'authorization',
    body: { amountCents: 1_001 },
    left: DECIDED.declined,
  },
  'an approval of what was cleared before': {
    before: 'clearing',
    verb: 'authorization',
    body: { amountCents: 300 },
    left: { ...ENDED.cleared, events: [CREATED], paid: 0 },
  },
  'an increment': {
    before: 'authorization',
    verb: 'increment',
    body: { amountCents: 200 },
    left: DECIDED.increased,
  },
  'a declined increment': {
    before: 'authorization',
    verb: 'increment',
    body: { amountCents: 701 },
    left: DECIDED['not increased'],
  },
  'a clearing': {
    before: 'authorization',
    verb: 'clearing',
    body: { amountCents: 100, final: false },
    left: ENDED.cleared,
  },
  'a reversal': {
    before: 'authorization',
    verb: 'reversal',
    body: { amountCents: 100 },
    left: ENDED.reversed,
  },
  'an expiry': { before: 'authorization', verb: 'expiry', body: {}, left: ENDED.expired },
  'an expiry on a blocked card': {
    before: 'authorization of a blocked card',
    verb: 'expiry',
    body: {},
    left: EXPIRED_ON_BLOCKED,
  },
};
