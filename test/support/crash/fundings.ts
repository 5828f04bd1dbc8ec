import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { issueCardWorkflowId } from '../../../workflows/messages.ts';
import {
  assertMoney,
  FUNDS,
  ISSUANCE,
  listed,
  type OperationKind,
  operating,
  pathOf,
  rowOf,
  TOP_UP,
  typesAbout,
  WITHDRAWAL,
} from '../operation-kinds.ts';
import { asOwner } from '../postgres.ts';
import type { Prepare } from './operations.ts';

export const ISSUANCE_STEPS = {
  request: 'requestIssuance',
  ask: 'issueCard',
  lookUp: 'lookUpIssuance',
  flagOverdue: 'flagIssuanceOverdue',
  resolve: 'applyIssuanceResolution',
};

export const TRANSFER_STEPS = {
  request: 'requestTransfer',
  ask: 'transfer',
  lookUp: 'lookUpTransfer',
  flagOverdue: 'flagTransferOverdue',
  resolve: 'applyTransferResolution',
};

/** An operation of this kind. If the case has no funds, the balance or the card has too little for it. */
const prepare =
  (of: OperationKind): Prepare =>
  async (kase, stack) => {
    const { amountCents, funded, resolve } = kase;
    const onCard = funded ? 2 * amountCents : amountCents - 1;
    const kind = of === WITHDRAWAL ? { ...of, cardCents: onCard } : of;
    const on = await operating(stack, kind, 'live', funded ? FUNDS : 0);
    if (on.cardId !== '') await stack.client.workflow.getHandle(issueCardWorkflowId(on.cardId)).result();
    const tooLittle = { status: 402, code: kind.short, end: null } as const;
    return {
      case: funded ? kase : { ...kase, endings: [tooLittle] },
      mode: 'live',
      partner: on.partner,
      key: randomUUID(),
      path: pathOf(on),
      body: { ...kind.body, amount: amountCents },
      workflowIdOf: (claim) => kind.workflow.idOf(claim.resource_id ?? ''),
      outcomes: { yes: kind.yes, no: 'failed' },
      isOverdue: async (_, { resource_id: id }) =>
        (await rowOf({ stack, kind, id: id ?? '' }))?.overdue_since != null,

      async assertLeft(_, { resource_id }, { end }) {
        const id = resource_id ?? '';
        const state = end === 'loaded' ? 'succeeded' : (end ?? 'nothing');
        const status = end === 'loaded' ? kind.statuses.succeeded : end;
        const left: { id: string; status: string }[] = await listed(on);
        assert.deepEqual(
          left.map((one) => [one.id, one.status]),
          end === null ? [] : [[id, status]],
        );
        assert.deepEqual(await typesAbout(on), state === 'nothing' ? [] : [kind.events[state]]);
        const made = await asOwner(
          stack,
          `SELECT FROM simulated_network.operation WHERE token = $1 AND outcome = 'succeeded'`,
          [id],
        );
        assert.equal(made.length, end === 'loaded' || resolve !== undefined ? 1 : 0);
        const cardId = kind === ISSUANCE && end !== null ? id : on.cardId;
        await assertMoney({ ...on, cardId }, state, amountCents);
      },
    };
  };

export const prepareIssuance = prepare(ISSUANCE);
export const prepareTopUp = prepare(TOP_UP);
export const prepareWithdrawal = prepare(WITHDRAWAL);
