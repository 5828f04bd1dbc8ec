import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { CardStatus } from '../../../domain/card-status.ts';
import { query } from '../../../platform/db/sql.ts';
import { changeCardStatusWorkflowId } from '../../../workflows/messages.ts';
import {
  assertOneOrder,
  cardIn,
  changeStatus,
  claimUnderWay,
  networkStatus,
  type Verb,
} from '../card-status.ts';
import { eventTypes, readCardRow } from '../cards.ts';
import { assertBalance, fundedPartner, priceOf } from '../money.ts';
import { asOwner } from '../postgres.ts';
import type { TestStack } from '../stack.ts';
import { until } from '../until.ts';
import { ask, type Operation } from './operations.ts';

const CARD_CENTS = 10_000;

interface StatusCase {
  from: 'active' | 'frozen';
  verb: Verb;
  /** Null: it is refused with 409. */
  to: CardStatus | null;
  /** The status that the network has given the card by itself. */
  atNetwork?: 'blocked';
}

/** Every outcome of changeCardStatus, with a network that refuses. */
export const STATUS_CASES = {
  'live freeze': { from: 'active', verb: 'freeze', to: 'frozen' },
  'live unfreeze': { from: 'frozen', verb: 'unfreeze', to: 'active' },
  'live block': { from: 'frozen', verb: 'block', to: 'blocked' },
  'live refused': { from: 'active', verb: 'unfreeze', to: null },
  'live refused there': { from: 'active', verb: 'freeze', to: null, atNetwork: 'blocked' },
} as const satisfies Record<string, StatusCase>;

export type StatusCaseName = keyof typeof STATUS_CASES;

const EVENTS: Record<Verb, string> = {
  freeze: 'card.frozen',
  unfreeze: 'card.unfrozen',
  block: 'card.blocked',
};

export async function prepareStatusChange(kind: StatusCase, stack: TestStack): Promise<Operation> {
  const { from, verb, to, atNetwork } = kind;
  const partner = await fundedPartner(stack);
  const cardId = await cardIn(stack, partner, 'live', from);
  if (atNetwork) {
    await asOwner(stack, 'UPDATE simulated_network.card SET status = $2 WHERE token = $1', [
      cardId,
      atNetwork,
    ]);
  }
  const before = await eventTypes(stack, cardId);
  const ending = to === null ? { status: 409, code: 'invalid_state' } : { status: 200 };
  return {
    case: { endings: [ending] },
    mode: 'live',
    partner,
    key: randomUUID(),
    path: `/cards/${cardId}/${verb}`,
    body: {},
    workflowIdOf: (claim) => changeCardStatusWorkflowId(cardId, claim.id),
    outcomes: { yes: '', no: '' },
    isOverdue: async () => false,

    async assertLeft(_, { id: claimId }) {
      const status = to ?? from;
      assert.equal((await readCardRow(stack, cardId))?.status, status);
      assert.equal(await claimUnderWay(stack, cardId), null);
      assert.deepEqual(await eventTypes(stack, cardId), to === null ? before : [...before, EVENTS[verb]]);
      assert.equal(await networkStatus(stack, cardId), atNetwork ?? status);
      assert.equal(await timesTaken(stack, claimId), to !== null ? 1 : 0);
      const spentCents = priceOf(CARD_CENTS) - (to === 'blocked' ? CARD_CENTS : 0);
      await assertBalance(stack, partner, 'live', { spentCents, heldCents: 0 });
    },
  };
}

/** A freeze, and opposite changes of the same card that come as soon as it has begun. */
export async function prepareOpposites(stack: TestStack): Promise<Operation> {
  const freeze = await prepareStatusChange(STATUS_CASES['live freeze'], stack);
  const { partner, path } = freeze;
  const [, , cardId = ''] = path.split('/');
  const others = until('it has begun', () => claimUnderWay(stack, cardId)).then(() =>
    Promise.all(
      Array.from({ length: 6 }, (_, index) =>
        changeStatus(partner, cardId, index % 2 === 0 ? 'unfreeze' : 'freeze', { mode: 'live' }),
      ),
    ),
  );
  return {
    ...freeze,
    async assertLeft() {
      const first = await ask(freeze);
      await assertOneOrder(stack, cardId, [first, ...(await others)]);
    },
  };
}

/** How often the simulated network has carried out a change of ours. */
async function timesTaken({ orm }: TestStack, claimId: string): Promise<number> {
  const rows = await query(
    orm.em.fork(),
    `SELECT FROM simulated_network.operation WHERE token = $1 AND outcome = 'succeeded'`,
    [claimId],
  );
  return rows.length;
}
