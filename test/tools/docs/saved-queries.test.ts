import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Connection } from '@temporalio/client';
import pg from 'pg';
import { notifyDeposits } from '../../../platform/db/notifications.ts';
import { query } from '../../../platform/db/sql.ts';
import { registerNamespace } from '../../../platform/temporal/namespace.ts';
import {
  changeCardStatusWorkflowId,
  issueCardWorkflowId,
  scanChainWorkflowId,
  transferWorkflowId,
  watchDepositWorkflowId,
} from '../../../workflows/messages.ts';
import { statusClaims } from '../../support/card-status.ts';
import { createCard, readCardRow } from '../../support/cards.ts';
import { pay } from '../../support/deposits/payments.ts';
import { seedDeposit, TEST_TRON } from '../../support/deposits/seed-deposits.ts';
import { fundedPartner } from '../../support/money.ts';
import { asOwner } from '../../support/postgres.ts';
import { testServers } from '../../support/servers.ts';
import { startTestStack, type TestStack } from '../../support/stack.ts';
import { until, untilHolds } from '../../support/until.ts';
import { readRow, setUrl, workflowIdOf } from '../../support/webhooks/events.ts';
import { answer, type Receiver, startReceiver } from '../../support/webhooks/receiver.ts';
import { detailsOf, skipTime, untilStarted } from '../../support/workflows.ts';

const PAGE = readFileSync(new URL('../../../docs/temporal-ui.md', import.meta.url), 'utf8');

/** The table of docs/temporal-ui.md: what each query finds, and the query. */
const SAVED = new Map(
  [
    ...(/\n## Saved queries\n.*?(?=\n## )/s.exec(PAGE)?.[0] ?? '').matchAll(
      /^\| (.+) \| (`{1,2})(.+)\2 \|$/gm,
    ),
  ].map(([, finds = '', , saved = '']) => [finds, saved]),
);

/** In a namespace of its own, with everything that can happen to cards, deposits and events of two partners. */
describe('the saved queries of the operating guide', () => {
  let stack: TestStack;
  let receiver: Receiver;
  let endSilence: () => Promise<unknown> = async () => {};
  /** What stands in the page for what the reader puts in. */
  let placeholders: Record<string, string>;
  let expected: Record<string, string[]>;

  before(async () => {
    const { address } = testServers().temporal;
    const namespace = `saved-${randomUUID()}`;
    const connection = await Connection.connect({ address });
    await registerNamespace(connection, namespace);
    await connection.close();
    receiver = await startReceiver();
    receiver.behave(answer(500));
    stack = await startTestStack({
      temporal: { connectionOptions: { address }, namespace },
      // Its node does not exist, so the scan is behind.
      tron: TEST_TRON,
      webhookDelaysMs: [50],
      issuanceDeadlineMs: 4_000,
      topUpDeadlineMs: 4_000,
      withdrawalDeadlineMs: 4_000,
    });
    await happen();
  });
  after(async () => {
    await endSilence();
    await stack.stop();
    await receiver.stop();
  });

  const workflow = (id: string) => stack.client.workflow.getHandle(id);

  async function happen(): Promise<void> {
    const [acme, other] = [await fundedPartner(stack), await fundedPartner(stack)];
    const live = { mode: 'live' } as const;
    const post = (path: string, body: object = {}) =>
      acme.call('POST', path, { ...live, body, idempotencyKey: randomUUID() });

    const { json: card } = await createCard(acme, { amount: 10_000 }, live);
    const { json: topUp } = await post(`/cards/${card.id}/topups`, { amount: 5_000 });
    const { json: stuckTopUp } = await post(`/cards/${card.id}/topups`, { amount: 5_047 });
    const { json: withdrawal } = await post(`/cards/${card.id}/withdrawals`, { amount: 1_000 });
    const { json: stuckWithdrawal } = await post(`/cards/${card.id}/withdrawals`, { amount: 1_047 });
    await post(`/cards/${card.id}/freeze`);
    const [freeze] = await statusClaims(stack, card.id);
    const { json: stuckCard } = await createCard(acme, { amount: 10_047 }, live);
    assert.equal((await createCard(other, { amount: 10_042 }, live)).status, 402);
    const [declined] = await query<{ resource_id: string }>(
      stack.orm.em.fork(),
      `SELECT resource_id FROM idempotency_claim WHERE partner_id = $1 AND operation = 'create_card'`,
      [other.id],
    );

    const { json: blocked } = await createCard(other, { amount: 10_000 }, live);
    await silenceNetwork(blocked.id);
    void other.call('POST', `/cards/${blocked.id}/block`, { ...live, idempotencyKey: randomUUID() });
    const block = await until('the block is claimed', async () => (await statusClaims(stack, blocked.id))[0]);

    const [awaited, review, terminated] = [
      await seedDeposit(stack, acme.id),
      await seedDeposit(stack, other.id),
      await seedDeposit(stack, other.id),
    ];
    await pay(stack.orm, review, { usdt: '10' });
    await notifyDeposits(stack.orm);

    await setUrl(stack, acme, receiver.url);
    const { json: testCard } = await createCard(acme, { amount: 1_000 });
    const [event] = await query<{ id: string }>(
      stack.orm.em.fork(),
      `SELECT id FROM event WHERE card_id = $1 AND type = 'card.issued'`,
      [testCard.id],
    );

    const ids = {
      issued: issueCardWorkflowId(card.id),
      overdue: issueCardWorkflowId(stuckCard.id),
      declined: issueCardWorkflowId(declined?.resource_id ?? ''),
      ofOther: issueCardWorkflowId(blocked.id),
      topUp: transferWorkflowId('topup', topUp.id),
      overdueTopUp: transferWorkflowId('topup', stuckTopUp.id),
      withdrawal: transferWorkflowId('withdrawal', withdrawal.id),
      overdueWithdrawal: transferWorkflowId('withdrawal', stuckWithdrawal.id),
      freeze: changeCardStatusWorkflowId(card.id, freeze?.id ?? ''),
      block: changeCardStatusWorkflowId(blocked.id, block.id),
      awaited: watchDepositWorkflowId(awaited),
      review: watchDepositWorkflowId(review),
      terminated: watchDepositWorkflowId(terminated),
      event: await workflowIdOf(stack, event?.id ?? ''),
      scan: scanChainWorkflowId('private', stack.config.taskQueuePrefix),
    };
    await untilStarted(workflow(ids.terminated));
    await workflow(ids.terminated).terminate();
    await untilStarted(workflow(ids.block));
    // Past ten minutes there is no timer any more whose time could be skipped.
    void skipTime(workflow(ids.block), 900_000).catch(() => {});
    await until(
      'the event is given up',
      async () => (await readRow(stack, event?.id ?? '')).status === 'given_up',
    );
    await until('the scan is behind', async () =>
      (await detailsOf(workflow(ids.scan))).includes('No block can be read'),
    );

    placeholders = {
      'card_…': card.id,
      'prt_…': acme.id,
      'dep_…': awaited,
      'evt_…': event?.id ?? '',
      'topup_…': topUp.id,
      'wdr_…': withdrawal.id,
      '2026-11-20T00:00:00Z': new Date(Date.now() - 3_600_000).toISOString(),
    };
    const overdue = [ids.overdue, ids.overdueTopUp, ids.overdueWithdrawal];
    const waiting = [...overdue, ids.block, ids.review, ids.event, ids.scan];
    expected = {
      'everything about a card: its issuance, top-ups, withdrawals and status changes': [
        ids.issued,
        ids.topUp,
        ids.overdueTopUp,
        ids.withdrawal,
        ids.overdueWithdrawal,
        ids.freeze,
      ],
      'a top-up': [ids.topUp],
      'a withdrawal': [ids.withdrawal],
      'a deposit': [ids.awaited],
      'the retries of an event': [ids.event],
      "what a partner's live account has in progress": [...overdue, ids.awaited],
      'what waits for a person': waiting,
      'what waits for a person, of one partner': [...overdue, ids.event],
      'issuances, top-ups and withdrawals past their deadline': overdue,
      'status changes that the network has not confirmed for ten minutes': [ids.block],
      'deposits with payments in review': [ids.review],
      "a partner's deposits that wait for their payment": [ids.awaited],
      'events that were given up and can be sent again': [ids.event],
      "the retries of a partner's events of one type": [ids.event],
      'chains whose scan is behind': [ids.scan],
      'cards, top-ups, withdrawals and status changes that failed today': [ids.declined],
      'what was started today and is over': [
        ids.issued,
        ids.declined,
        ids.ofOther,
        ids.topUp,
        ids.withdrawal,
        ids.freeze,
        ids.terminated,
      ],
      'workflows that did not end on their own, of which there should be none': [ids.terminated],
    };
  }

  async function silenceNetwork(cardId: string): Promise<void> {
    const table = 'ALTER TABLE simulated_network.operation';
    const networkCardId = pg.escapeLiteral((await readCardRow(stack, cardId))?.network_card_id ?? '');
    await asOwner(
      stack,
      `${table} ADD CONSTRAINT silent CHECK (request ->> 'networkCardId' <> ${networkCardId}) NOT VALID`,
    );
    endSilence = () => asOwner(stack, `${table} DROP CONSTRAINT silent`);
  }

  it('are all tested here', () => {
    assert.deepEqual([...SAVED.keys()].sort(), Object.keys(expected).sort());
  });

  for (const [finds, saved] of SAVED) {
    it(`find exactly ${finds}`, () =>
      untilHolds(async () => {
        const asked = Object.entries(placeholders).reduce(
          (text, [from, to]) => text.replaceAll(from, to),
          saved,
        );
        const found: string[] = [];
        for await (const { workflowId } of stack.client.workflow.list({ query: asked }))
          found.push(workflowId);
        assert.deepEqual(found.sort(), expected[finds]?.toSorted(), asked);
      }));
  }
});
