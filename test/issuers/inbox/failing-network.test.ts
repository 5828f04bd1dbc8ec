import assert from 'node:assert/strict';
import { decideIssuance } from '../../../cards/resolve.ts';
import {
  type CardNetwork,
  CardNetworkUnavailable,
  type LookUpAnswer,
} from '../../../issuers/card-network.ts';
import { issueCardWorkflowId, networkResult } from '../../../workflows/messages.ts';
import { changeStatus, networkStatus, VERBS } from '../../support/card-status.ts';
import { createCard, readCardRow } from '../../support/cards.ts';
import { assertBalance, assertLedgerClean, fundedPartner, priceOf } from '../../support/money.ts';
import { completeAtNetwork, NEVER_FINISHES } from '../../support/operation-kinds.ts';
import { ACTOR, environmentOf, lastAudit, type Operate, operateIn } from '../../support/operator/operate.ts';
import { asOwner } from '../../support/postgres.ts';
import { startTestStack, type TestPartner, type TestStack } from '../../support/stack.ts';
import { transfer } from '../../support/transfers.ts';
import { until } from '../../support/until.ts';
import { detailsOf } from '../../support/workflows.ts';

describe('operator commands while the card network fails', () => {
  let stack: TestStack;
  let partner: TestPartner;
  let operate: Operate;
  /** What happens to look-ups of issuances that the network has accepted. */
  let isAway = false;
  let knows: (answer: LookUpAnswer) => LookUpAnswer = (answer) => answer;
  const asked = new Set<string>();

  const reach = async <A extends LookUpAnswer>(
    token: string,
    ask: () => Promise<A>,
  ): Promise<LookUpAnswer> => {
    // The first question of each is how the network hears of it.
    const isFirst = !asked.has(token);
    asked.add(token);
    if (isAway && !isFirst) throw new CardNetworkUnavailable('card network: no answer, in a test');
    return knows(await ask());
  };

  before(async () => {
    stack = await startTestStack({ issuanceDeadlineMs: 1_000 }, { worker: false });
    const network = (real: CardNetwork): CardNetwork => ({
      ...real,
      issueCard: async (request) => {
        const answer = await reach(request.token, () => real.issueCard(request));
        if (answer.status === 'unknown') throw new CardNetworkUnavailable('card network: 503, in a test');
        return answer;
      },
      lookUpIssuance: (token) => reach(token, () => real.lookUpIssuance(token)),
    });
    await stack.startWorker({ around: { activities: (same) => same, network } });
    operate = operateIn(environmentOf(stack.config));
  });
  beforeEach(async () => {
    isAway = false;
    knows = (answer) => answer;
    partner = await fundedPartner(stack);
  });
  after(async () => {
    await assertLedgerClean(stack);
    await stack.stop();
  });

  const row = (cardId: string) => readCardRow(stack, cardId);
  const itemOf = async (cardId: string) =>
    (await operate('attention', 'list')).json.find((item: { id: string }) => item.id === cardId);
  const resolve = (cardId: string, ...flags: string[]) =>
    operate('card', 'resolve', cardId, ...flags, '--reason', 'by telephone');
  const assertHeld = () =>
    assertBalance(stack, partner, 'live', { spentCents: 0, heldCents: priceOf(NEVER_FINISHES) });
  const workflowOf = (cardId: string) => stack.client.workflow.getHandle(issueCardWorkflowId(cardId));

  async function overdue(): Promise<string> {
    const { status, json, text } = await createCard(partner, { amount: NEVER_FINISHES }, { mode: 'live' });
    assert.equal(status, 202, text);
    await until('it is overdue', async () => (await row(json.id))?.overdue_since);
    return json.id;
  }

  /** The id that the simulated network has for a card of ours. */
  async function idAtNetwork(cardId: string): Promise<string> {
    const [card] = await asOwner<{ id: string }>(
      stack,
      'SELECT network_card_id AS id FROM simulated_network.card WHERE token = $1',
      [cardId],
    );
    return card?.id ?? '';
  }

  async function assertUsable(cardId: string): Promise<void> {
    const topUp = await transfer('topup', { partner, mode: 'live', cardId }, 5_000);
    assert.equal(topUp.status, 201, topUp.text);
    for (const verb of VERBS) {
      const changed = await changeStatus(partner, cardId, verb, { mode: 'live' });
      assert.equal(changed.status, 200, changed.text);
    }
    assert.equal(await networkStatus(stack, cardId), 'blocked');
  }

  /** Looks it up at once, not only in ten minutes. */
  const hurry = (cardId: string) =>
    asOwner(stack, `UPDATE card SET look_up_after = '-infinity' WHERE id = $1`, [cardId]);

  it('show operators what the network last answered, until it answers again', async () => {
    const cardId = await overdue();
    const problems = async () => {
      const { waiting } = (await operate('card', 'show', cardId)).json;
      const [operation] = (await operate('operation', 'list', '--partner', partner.id)).json;
      return [waiting.network_problem, operation.network_problem];
    };
    const reason = async () => (await itemOf(cardId)).reason;
    const answered = 'the network has not said whether it issued the card';
    assert.deepEqual([await reason(), ...(await problems())], [answered, null, null]);
    isAway = true;
    await workflowOf(cardId).signal(networkResult);
    const away = 'card network: no answer, in a test';
    await until(
      'it is listed',
      async () => (await reason()) === `${answered}. When it was last asked: ${away}`,
    );
    assert.deepEqual(await problems(), [away, away]);
    isAway = false;
    await workflowOf(cardId).signal(networkResult);
    await until('it has answered', async () => (await reason()) === answered);
    assert.deepEqual(await problems(), [null, null]);
  });

  /** Without it, a card could never be frozen, blocked or topped up. */
  describe("have the network's id of a card that is resolved as issued, which", () => {
    it('comes from the network, if it can be reached', async () => {
      const cardId = await overdue();
      const { code, json, err } = await resolve(cardId, '--issued');
      assert.deepEqual(
        [code, json?.status, json?.network_card_id],
        [0, 'active', await idAtNetwork(cardId)],
        err,
      );
      assert.match(json.last4, /^\d{4}$/);
      await assertUsable(cardId);
    });

    it("must be given while the network can't be reached, and is checked until the network confirms it", async () => {
      const cardId = await overdue();
      isAway = true;
      const refused = await resolve(cardId, '--issued');
      assert.deepEqual([refused.code, refused.out], [1, '']);
      assert.match(refused.err, /cannot be reached.*--network-card-id/);
      assert.equal((await row(cardId))?.status, 'funding_pending');
      await assertHeld();
      assert.equal((await itemOf(cardId)).kind, 'card_issuance');

      const networkCardId = await idAtNetwork(cardId);
      const given = await resolve(cardId, '--issued', '--network-card-id', networkCardId);
      assert.deepEqual(
        [given.code, given.json?.network_card_id, given.json?.last4],
        [0, networkCardId, null],
        given.err,
      );
      assert.deepEqual(await lastAudit(operate), {
        ...{ actor: ACTOR, action: 'card.resolve', subject: cardId },
        detail: {
          partnerId: partner.id,
          mode: 'live',
          outcome: 'issued',
          networkCardId,
          reason: 'by telephone',
        },
      });
      assert.equal(await itemOf(cardId), undefined);
      isAway = false;
      await hurry(cardId);
      await until('its digits are known', async () => (await row(cardId))?.last4);
      await assertUsable(cardId);
    });

    it('is not needed for --failed, which is applied while the network is away, even if it was only recorded', async () => {
      const cardId = await overdue();
      isAway = true;
      const decision = { cardId, outcome: 'failed' as const, reason: 'by telephone', deadlineMs: 1_000 };
      await decideIssuance(stack.operator, decision);
      await workflowOf(cardId).signal(networkResult);
      await workflowOf(cardId).result();
      const { status, failure_code } = (await row(cardId)) ?? {};
      assert.deepEqual([status, failure_code], ['failed', 'operator_failed']);
      await assertBalance(stack, partner, 'live', { spentCents: 0, heldCents: 0 });
    });

    it('must be given if the network does not know the card', async () => {
      const cardId = await overdue();
      knows = () => ({ status: 'unknown' });
      const refused = await resolve(cardId, '--issued');
      assert.equal(refused.code, 1);
      assert.match(refused.err, /does not know the card.*--network-card-id.*--failed/);
      await assertHeld();
      const { code, json } = await resolve(cardId, '--failed');
      assert.deepEqual([code, json.status], [0, 'failed']);
      await assertBalance(stack, partner, 'live', { spentCents: 0, heldCents: 0 });
    });

    it('is refused if the network has the card under another id, or another card has this one', async () => {
      const cardId = await overdue();
      const { json: other } = await createCard(partner, { amount: 10_000 }, { mode: 'live' });
      const taken = await resolve(cardId, '--issued', '--network-card-id', await idAtNetwork(other.id));
      assert.equal(taken.code, 1);
      assert.match(taken.err, /Another card already has the network card id/);
      const wrong = await resolve(cardId, '--issued', '--network-card-id', 'mistyped');
      assert.equal(wrong.code, 1);
      assert.match(wrong.err, /under a different id/);
      assert.equal((await row(cardId))?.status, 'funding_pending');
      assert.equal((await resolve(cardId, '--issued')).code, 0);
    });

    it('must be in a signal from the Temporal UI as well', async () => {
      const cardId = await overdue();
      isAway = true;
      await workflowOf(cardId).signal('resolve', { outcome: 'issued' });
      const why = 'the network cannot be reached to look up its id';
      await until('its details say why it still waits', async () =>
        (await detailsOf(workflowOf(cardId))).includes(why),
      );
      await assertHeld();
      const networkCardId = await idAtNetwork(cardId);
      await workflowOf(cardId).signal('resolve', { outcome: 'issued', networkCardId });
      await workflowOf(cardId).result();
      const { status, network_card_id } = (await row(cardId)) ?? {};
      assert.deepEqual([status, network_card_id], ['active', networkCardId]);
    });

    it("can be corrected until the network has confirmed one, and the network's own id wins", async () => {
      const cardId = await overdue();
      isAway = true;
      assert.equal((await resolve(cardId, '--issued', '--network-card-id', 'mistyped')).code, 0);
      for (const flags of [['--issued'], ['--failed']]) {
        const { code, err } = await resolve(cardId, ...flags);
        assert.equal(code, 1);
        assert.match(err, /the card is active.*--issued --network-card-id N/);
      }
      assert.equal((await resolve(cardId, '--issued', '--network-card-id', 'again')).code, 0);
      const networkCardId = await idAtNetwork(cardId);
      isAway = false;
      await hurry(cardId);
      await until('it is the right one', async () => (await row(cardId))?.network_card_id === networkCardId);
      const { err } = await resolve(cardId, '--issued', '--network-card-id', 'mistyped');
      assert.match(err, /there is nothing to resolve/);
      await assertUsable(cardId);
    });

    it("is each card's own in the end if two were given each other's", async () => {
      const [one, other] = [await overdue(), await overdue()];
      const [idOfOne, idOfOther] = [await idAtNetwork(one), await idAtNetwork(other)];
      isAway = true;
      for (const [cardId, networkCardId] of [
        [one, idOfOther],
        [other, idOfOne],
      ] as const) {
        const given = await resolve(cardId, '--issued', '--network-card-id', networkCardId);
        assert.equal(given.code, 0, given.err);
      }
      isAway = false;
      await hurry(one);
      for (const [cardId, networkCardId] of [
        [one, idOfOne],
        [other, idOfOther],
      ] as const) {
        await until('it is its own', async () => (await row(cardId))?.network_card_id === networkCardId);
        await assertUsable(cardId);
      }
    });

    it('is listed if the network does not confirm it for a day', async () => {
      const cardId = await overdue();
      isAway = true;
      assert.equal((await resolve(cardId, '--issued', '--network-card-id', 'mistyped')).code, 0);
      assert.equal(await itemOf(cardId), undefined);
      await asOwner(stack, `UPDATE card SET created_at = created_at - interval '1 day' WHERE id = $1`, [
        cardId,
      ]);
      const { kind, reason, command } = await itemOf(cardId);
      assert.equal(kind, 'card_network_id');
      const flags = '--issued --network-card-id "…" --reason "…"';
      assert.equal(command, `npm run operator -- card resolve ${cardId} ${flags}`);
      assert.match(reason, /in use as mistyped.*does not confirm this id: look the card up by its token/);
    });

    describe('that was given to another card', () => {
      /** Two cards: the first was given the second one's id at the network. */
      async function mistaken(): Promise<{ wrong: string; right: string; networkCardId: string }> {
        const [wrong, right] = [await overdue(), await overdue()];
        const networkCardId = await idAtNetwork(right);
        isAway = true;
        const given = await resolve(wrong, '--issued', '--network-card-id', networkCardId);
        assert.equal(given.code, 0, given.err);
        return { wrong, right, networkCardId };
      }

      async function complete(cardId: string): Promise<void> {
        await completeAtNetwork(stack, cardId);
        await workflowOf(cardId).signal(networkResult);
        await workflowOf(cardId).result();
      }

      const untilItsOwn = async (cardId: string) => {
        const ownId = await idAtNetwork(cardId);
        await until('it has its own', async () => (await row(cardId))?.network_card_id === ownId);
      };

      it('goes to the card that the network issues under it, and the other one is looked up', async () => {
        const { wrong, right, networkCardId } = await mistaken();
        isAway = false;
        await complete(right);
        const { status, network_card_id } = (await row(right)) ?? {};
        assert.deepEqual([status, network_card_id], ['active', networkCardId]);
        await untilItsOwn(wrong);
        for (const cardId of [wrong, right]) await assertUsable(cardId);
      });

      it('stays with a card for which the network has confirmed it, and an operator decides about the other one', async () => {
        const right = await overdue();
        const { json: holder } = await createCard(partner, { amount: 10_000 }, { mode: 'live' });
        const networkCardId = await idAtNetwork(right);
        await asOwner(stack, 'UPDATE card SET network_card_id = $2 WHERE id = $1', [
          holder.id,
          networkCardId,
        ]);
        await completeAtNetwork(stack, right);
        await workflowOf(right).signal(networkResult);
        const item = await until('it is listed', async () => {
          const found = await itemOf(right);
          return found?.reason.includes('recording that failed') && found;
        });
        assert.equal(
          item.command,
          `temporal workflow signal --workflow-id issue-card/${right} --name networkResult`,
        );
        const { code, json, err } = await resolve(right, '--failed');
        assert.deepEqual([code, json?.status], [0, 'failed'], err);
      });

      it("goes to it from a card that is blocked by now, and on an operator's decision", async () => {
        const { wrong, right, networkCardId } = await mistaken();
        await asOwner(stack, `UPDATE card SET status = 'blocked' WHERE id = $1`, [wrong]);
        isAway = false;
        const { code, json, err } = await resolve(right, '--issued');
        assert.deepEqual([code, json?.network_card_id], [0, networkCardId], err);
        await untilItsOwn(wrong);
        await asOwner(stack, `UPDATE card SET status = 'active' WHERE id = $1`, [wrong]);
      });
    });
  });
});
