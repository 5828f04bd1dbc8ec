import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { decideIssuance } from '../../cards/resolve.ts';
import { networkResult } from '../../workflows/messages.ts';
import { createCard } from '../support/cards.ts';
import { fundedPartner } from '../support/money.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { Answer, TestPartner, TestStack } from '../support/stack.ts';
import { until } from '../support/until.ts';

/** What GET /operations says of what takes longer than its request. The digits of an amount are in docs/partners/testing.md. */
describe('an operation that outlives its request', () => {
  let stack: TestStack;
  let partner: TestPartner;
  before(async () => {
    stack = await sharedStack('deadlines');
    partner = await fundedPartner(stack, 1_000_000);
  });
  // biome-ignore lint/suspicious/noExplicitAny: an operation as the API returns it.
  const read = async (of: Answer): Promise<any> => {
    const id = of.headers.get('operation-id');
    const { status, json, text } = await partner.call('GET', `/operations/${id}`, { mode: 'live' });
    assert.equal(status, 200, text);
    return json;
  };
  // biome-ignore lint/suspicious/noExplicitAny: an operation as the API returns it.
  const untilIt = async (of: Answer, is: (operation: any) => boolean): Promise<any> => {
    let last: unknown;
    await until('the operation is so', async () => {
      last = await read(of);
      return is(last);
    });
    return last;
  };
  const listed = async (status: string): Promise<string[]> => {
    const { json } = await partner.call('GET', `/operations?status=${status}&limit=100`, { mode: 'live' });
    return json.data.map(({ id }: { id: string }) => id);
  };
  const issue = (amount: number) => createCard(partner, { amount }, { mode: 'live' });

  it('says that it waits for the network, and is completed with the card', async () => {
    const answer = await issue(1_041);
    assert.equal(answer.status, 202, answer.text);
    const pending = await read(answer);
    assert.deepEqual(
      [pending.status, pending.response_status, pending.waits_for, pending.completed_at, pending.resource],
      ['in_progress', 202, 'network', null, { type: 'card', id: answer.json.id }],
    );
    assert.ok(pending.network.asked >= 1);
    assert.equal(pending.network.last_answer, 'pending');
    assert.ok(pending.network.next_ask_at > pending.network.last_asked_at);
    assert.ok(pending.network.deadline >= pending.network.next_ask_at);
    assert.ok((await listed('in_progress')).includes(pending.id));

    const completed = await untilIt(answer, ({ status }) => status === 'completed');
    assert.deepEqual(
      [completed.response_status, completed.waits_for, completed.resource, completed.network.next_ask_at],
      [202, null, pending.resource, null],
    );
    assert.equal(completed.network.last_answer, 'succeeded');
    assert.ok(completed.network.asked > pending.network.asked);
    assert.ok(completed.completed_at > completed.created);
    assert.ok((await listed('completed')).includes(pending.id));
    assert.ok(!(await listed('in_progress')).includes(pending.id));
  });

  it('is completed with a card that failed after its 202', async () => {
    const answer = await issue(1_043);
    const completed = await untilIt(answer, ({ status }) => status === 'completed');
    assert.deepEqual(
      [completed.response_status, completed.network.last_answer, completed.resource.id],
      [202, 'declined', answer.json.id],
    );
  });

  it('has nothing of the network if that decided at once, whatever it said', async () => {
    for (const [amount, status] of [
      [1_000, 201],
      [1_042, 402],
    ] as const) {
      const answer = await issue(amount);
      assert.equal(answer.status, status, answer.text);
      const shown = await read(answer);
      assert.deepEqual([shown.status, shown.network, shown.response_status], ['completed', null, status]);
    }
  });

  it('says how often the network was asked that was away, though the request got its outcome', async () => {
    const answer = await issue(1_048);
    assert.equal(answer.status, 201, answer.text);
    const { status, network } = await read(answer);
    assert.deepEqual([status, network.last_answer, network.next_ask_at], ['completed', 'succeeded', null]);
    assert.ok(network.asked > 1, String(network.asked));
  });

  it('waits for an operator after its deadline, and is completed with the decision', async () => {
    const answer = await issue(1_047);
    const waiting = await untilIt(answer, ({ status }) => status === 'awaiting_review');
    assert.deepEqual([waiting.waits_for, waiting.completed_at], ['operator', null]);
    assert.ok(waiting.network.deadline <= new Date().toISOString());
    assert.ok(waiting.network.next_ask_at > waiting.network.deadline);
    assert.ok((await listed('awaiting_review')).includes(waiting.id));

    const { id: cardId } = answer.json;
    const { issuanceDeadlineMs: deadlineMs } = stack.config;
    const decision = { cardId, outcome: 'failed', networkCardId: undefined, reason: 'a test', deadlineMs };
    await decideIssuance(stack.operator, decision as Parameters<typeof decideIssuance>[1]);
    await stack.client.workflow.getHandle(`issue-card/${cardId}`).signal('resolve', { outcome: 'failed' });
    const completed = await untilIt(answer, ({ status }) => status === 'completed');
    assert.deepEqual([completed.waits_for, completed.response_status], [null, 202]);
  });

  it('counts each time the network is asked', async () => {
    const { json: card } = await issue(10_000);
    const body = { amount: 1_047 };
    const options = { mode: 'live', body, idempotencyKey: randomUUID() } as const;
    const answer = await partner.call('POST', `/cards/${card.id}/topups`, options);
    assert.equal(answer.status, 202, answer.text);
    const first = await read(answer);
    for (let more = 1; more <= 3; more++) {
      await stack.client.workflow.getHandle(`top-up/${answer.json.id}`).signal(networkResult);
      const next = await untilIt(answer, ({ network }) => network.asked >= first.network.asked + more);
      assert.equal(next.network.last_answer, 'pending');
      assert.ok(next.network.last_asked_at > first.network.last_asked_at);
    }
  });
});
