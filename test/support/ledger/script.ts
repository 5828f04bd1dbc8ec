import fc from 'fast-check';
import type { Mode } from '../../../domain/mode.ts';
import type { Posting, Transfer } from '../../../ledger/posting.ts';
import { cardHold, resolve, transfer } from './operations.ts';

/** What fast-check draws for one operation; what it means depends on the operations before it. */
interface Draw {
  kind: (typeof KINDS)[number];
  owner: number;
  card: number;
  cents: number;
  feeCents: number;
  pick: number;
}

const KINDS = [
  ...['fund', 'fund', 'hold', 'hold', 'hold', 'topUp', 'holdAndPost', 'topUpAtOnce'],
  ...['post', 'post', 'post', 'postPart', 'postAndFail', 'void', 'void'],
  ...['purchase', 'purchase', 'refund', 'decline', 'release', 'lateDebit', 'adjustDown'],
  ...['authorize', 'authorize', 'authorize', 'holdAnew', 'holdAnew', 'clear', 'withdraw', 'withdrawAtOnce'],
  ...[
    'again',
    'again',
    'altered',
    'shortened',
    'foreignCard',
    'wrongAccounts',
    'unknownHold',
    'holdNotAllowed',
  ],
] as const;

const draw: fc.Arbitrary<Draw> = fc.record({
  kind: fc.constantFrom(...KINDS),
  owner: fc.nat(2),
  card: fc.nat(3),
  cents: fc.integer({ min: 1, max: 300 }),
  feeCents: fc.integer({ min: 1, max: 20 }),
  pick: fc.nat(10_000),
});

export function draws(count: number): fc.Arbitrary<Draw[]> {
  return fc.array(draw, { minLength: count, maxLength: count });
}

let scripts = 0;

interface Script {
  /** A first use of every account there is. */
  openings: Posting[];
  postings: Posting[];
}

/** Operations of three owners, whose ids and cards are new at each call, because a ledger remembers. */
export function scriptOf(drawn: Draw[]): Script {
  const run = `${process.pid}_${scripts++}`;
  const postings: Posting[] = [];
  for (const [index, one] of drawn.entries()) postings.push(toOperation(run, `${index}`, one, postings));
  const openings = [0, 1, 2].flatMap((owner) =>
    [0, 1, 2, 3].map((card) => {
      const opening = toOperation(run, `open_${owner}_${card}`, { ...OPENING, owner, card }, []);
      return { ...opening, transfers: [...opening.transfers, transfer('adjustment_credit', 1)] };
    }),
  );
  return { openings, postings };
}

const OPENING = { kind: 'refund', cents: 1, feeCents: 1, pick: 0 } as const;

function toOperation(run: string, name: string, drawn: Draw, earlier: Posting[]): Posting {
  const { kind, owner, card, cents, feeCents, pick } = drawn;
  const cardId = `card_${run}_${owner}_${card}`;
  const own = (...transfers: Transfer[]): Posting => ({
    operationId: `op_${run}_${name}`,
    partnerId: `prt_${run}_${owner === 2 ? 'b' : 'a'}`,
    mode: (['test', 'live', 'test'] as Mode[])[owner] as Mode,
    transfers,
  });
  const pending = { phase: 'pending' } as const;
  const any = earlier[pick % earlier.length];
  const holds = earlier.filter(({ transfers }) => transfers.every(({ phase }) => phase === 'pending'));
  const held = holds[holds.length - 1 - (pick % Math.min(holds.length, 8))];

  const authorized = lastHold(earlier, pick);

  switch (kind) {
    case 'hold':
      return own(...cardHold(cents, feeCents, cardId), transfer('fee_activation', feeCents, pending));
    case 'topUp':
      return own(
        transfer('topup', cents, { ...pending, cardId }),
        transfer('fee_funding', feeCents, pending),
      );
    case 'holdAndPost': {
      const both = cardHold(cents, feeCents, cardId);
      return own(...both, ...resolve('post', both));
    }
    case 'topUpAtOnce':
      return own(transfer('topup', cents, { cardId }), transfer('fee_funding', feeCents));
    case 'post':
    case 'void':
      if (held !== undefined) return { ...held, transfers: resolve(kind, held.transfers) };
      break;
    case 'postPart':
      if (held !== undefined) {
        const posts = resolve('post', held.transfers);
        return {
          ...held,
          transfers: posts.map((post) => ({ ...post, amountCents: Math.min(post.amountCents, cents) })),
        };
      }
      break;
    case 'postAndFail':
      if (held !== undefined) {
        return {
          ...held,
          transfers: [...resolve('post', held.transfers), transfer('topup', 1_000_000, { cardId })],
        };
      }
      break;
    case 'authorize':
      return own(transfer('authorization', cents, { ...pending, cardId, step: 'hold' }));
    case 'holdAnew':
      if (authorized !== undefined) {
        const { step } = authorized.hold;
        const [post] = resolve(pick % 2 === 0 ? 'post' : 'void', [authorized.hold]);
        return {
          ...authorized.posting,
          transfers: [post as Transfer, { ...authorized.hold, step: `${step}/next`, amountCents: cents }],
        };
      }
      break;
    case 'clear':
      if (authorized !== undefined) {
        const more = [
          transfer('purchase', cents, { cardId: cardIdOf(authorized.hold) }),
          transfer('late_debit', feeCents),
        ];
        return { ...authorized.posting, transfers: [...resolve('post', [authorized.hold]), ...more] };
      }
      break;
    case 'withdraw':
      return own(transfer('withdrawal', cents, { ...pending, cardId }));
    case 'withdrawAtOnce':
      return own(transfer('withdrawal', cents, { cardId }));
    case 'purchase':
      return own(transfer('purchase', cents, { cardId }), transfer('fee_transaction', feeCents));
    case 'refund':
      return own(transfer('refund', cents, { cardId }));
    case 'decline':
      return own(transfer('fee_decline', feeCents));
    case 'release':
      return own(transfer('block_release', cents, { cardId }));
    case 'lateDebit':
      return own(transfer('late_debit', cents), transfer('fee_transaction', feeCents));
    case 'adjustDown':
      return own(transfer('adjustment_debit', cents));
    case 'again':
      if (any !== undefined) return any;
      break;
    case 'altered':
      if (any !== undefined) {
        return { ...any, transfers: any.transfers.map((t) => ({ ...t, amountCents: t.amountCents + 1 })) };
      }
      break;
    case 'shortened':
      if (any !== undefined) return { ...any, transfers: any.transfers.slice(-1) };
      break;
    case 'foreignCard':
      return own(
        transfer('fee_decline', 1),
        transfer('topup', cents, { cardId: `card_${run}_${(owner + 1) % 3}_${card}` }),
      );
    case 'wrongAccounts':
      return own(transfer('fee_decline', 1), transfer('topup', cents, { debit: 'faucet' }));
    case 'unknownHold':
      return own(transfer('topup', cents, { phase: 'post', resolves: 'nothing', cardId }));
    case 'holdNotAllowed':
      return own(transfer('refund', cents, { ...pending, cardId }));
  }
  return own(
    transfer(
      (['fund_faucet', 'fund_usdt', 'adjustment_credit'] as const)[pick % 3] ?? 'fund_usdt',
      cents * 3,
    ),
  );
}

/** One of the last holds of an authorization, which is the last transfer of its posting. */
function lastHold(earlier: Posting[], pick: number): { posting: Posting; hold: Transfer } | undefined {
  const found = earlier.flatMap((posting) => {
    const hold = posting.transfers.at(-1);
    return hold?.code === 'authorization' && hold.phase === 'pending' ? [{ posting, hold }] : [];
  });
  return found[found.length - 1 - (pick % Math.min(found.length, 4))];
}

function cardIdOf({ debit }: Transfer): string {
  return typeof debit === 'string' ? '' : debit.cardId;
}
