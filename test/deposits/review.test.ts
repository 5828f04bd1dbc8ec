import assert from 'node:assert/strict';
import type { WorkflowHandle } from '@temporalio/client';
import { tokenTransfer } from '../../dev/tron/drafts.ts';
import { resolveDepositSignal, watchDepositWorkflowId } from '../../workflows/messages.ts';
import {
  type DepositStack,
  openAddress,
  startDepositStack,
  untilDeposit,
} from '../support/deposits/deposit-stack.ts';
import { assertLedgerClean } from '../support/money.ts';
import { environmentOf, type Operate, operateIn } from '../support/operator/operate.ts';
import type { TestPartner } from '../support/stack.ts';
import { until } from '../support/until.ts';
import { untilStarted } from '../support/workflows.ts';

const CENTS = 2_500;

/** From a transfer on the chain to what the partner sees of an operator's decision. */
describe('a deposit that needs review', () => {
  let deposits: DepositStack;
  let partner: TestPartner;
  let operate: Operate;
  before(async () => {
    deposits = await startDepositStack({}, { nodes: ['one', 'two'] });
    operate = operateIn(environmentOf(deposits.stack.config));
  });
  beforeEach(async () => {
    partner = await deposits.stack.createPartner();
  });
  after(async () => {
    await assertLedgerClean(deposits.stack);
    await deposits.stop();
  });

  const pay = (address: string, ...usdt: number[]): string[] => {
    const drafts = usdt.map((one) =>
      tokenTransfer({ to: address, valueMicroUsdt: BigInt(Math.round(one * 1_000_000)) }),
    );
    const { transactions } = deposits.chain.mine(drafts);
    deposits.chain.solidify();
    return transactions.map(({ id }) => id);
  };
  const waiting = async (id: string) => {
    const { json } = await operate('attention', 'list');
    return json.find((item: { id: string }) => item.id === id);
  };
  const workflowOf = (id: string): WorkflowHandle =>
    deposits.stack.client.workflow.getHandle(watchDepositWorkflowId(id));
  const untilEnded = async (id: string) => {
    await untilStarted(workflowOf(id));
    await until('its workflow has ended', async () => {
      const { status, searchAttributes } = await workflowOf(id).describe();
      return status.name === 'COMPLETED' && searchAttributes.NeedsAttention?.[0] !== true;
    });
  };
  /** The partner's balance and events. */
  async function partners() {
    const [balance, changes, events] = await Promise.all(
      ['/balance', '/balance/transactions', '/events?type=deposit.confirmed'].map((path) =>
        partner.call('GET', path, { mode: 'live' }),
      ),
    );
    return {
      total: balance?.json.total,
      sources: changes?.json.data.map(({ source }: { source: object }) => source),
      confirmed: events?.json.data.map(({ data }: { data: { deposit: Record<string, unknown> } }) => [
        data.deposit.status,
        data.deposit.received_amount,
      ]),
    };
  }

  it('is credited by the command in attention list if it was paid in parts', async () => {
    const { id, address } = await openAddress(partner, CENTS);
    pay(address, 10.006, 14.999);
    await untilDeposit(partner, id, 'needs_review');
    const item = await until('it waits for a person', () => waiting(id));
    assert.match(item.reason, /^25\.00 USDT expected; (10\.006|25\.005) USDT in/);
    await until('both are judged', async () =>
      (await waiting(id)).reason.includes('25.005 USDT in 2 payments'),
    );
    assert.deepEqual(await partners(), { total: 0, sources: [], confirmed: [] });

    const { command } = await waiting(id);
    const words = command.replace('npm run operator -- ', '').split(' ');
    const { code, err } = await operate(...words.map((word: string) => (word === '"…"' ? 'ticket 7' : word)));
    assert.equal(code, 0, err);
    const { received_amount, payments } = await untilDeposit(partner, id, 'confirmed');
    assert.deepEqual([received_amount, payments.length], [CENTS, 2]);
    assert.deepEqual(await partners(), {
      total: CENTS,
      sources: [{ type: 'deposit', id }],
      confirmed: [['confirmed', CENTS]],
    });
    assert.equal(await waiting(id), undefined);
    await untilEnded(id);
  });

  it('is credited by a signal if it was paid again after it was confirmed', async () => {
    const { id, address } = await openAddress(partner, CENTS);
    pay(address, 25);
    await untilDeposit(partner, id, 'confirmed');
    await untilEnded(id);
    const { runId } = await workflowOf(id).describe();
    pay(address, 25);
    await untilDeposit(partner, id, 'needs_review');
    await until('another run shows it', async () => {
      const { runId: latest, searchAttributes } = await workflowOf(id).describe();
      return latest !== runId && searchAttributes.NeedsAttention?.[0] === true;
    });
    await workflowOf(id).signal(resolveDepositSignal, { outcome: 'credited', reason: 'they meant it' });
    await untilDeposit(partner, id, 'confirmed');
    await untilEnded(id);
    assert.deepEqual(await partners(), {
      total: 2 * CENTS,
      sources: [
        { type: 'deposit', id },
        { type: 'deposit', id },
      ],
      confirmed: [
        ['confirmed', 2 * CENTS],
        ['confirmed', CENTS],
      ],
    });
  });
});
