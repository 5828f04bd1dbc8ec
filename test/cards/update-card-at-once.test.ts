import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { beginStatusChange } from '../../cards/change-status.ts';
import { acceptIssuance, completeIssuance, failIssuance } from '../../cards/end-issuance.ts';
import { beginIssuance } from '../../cards/issue.ts';
import { beginTransfer } from '../../cards/transfers/begin.ts';
import { updateCard } from '../../cards/update.ts';
import { ApiError } from '../../domain/api-error.ts';
import type { ClaimOperation } from '../../domain/claim-operation.ts';
import { TRANSFERS, type TransferDirection } from '../../domain/transfer.ts';
import { checkLedger } from '../../ledger/check-ledger.ts';
import { readClaimResponse } from '../../requests/response.ts';
import { keyedRequest, openCommands, type TestCommands } from '../support/commands/open-commands.ts';

const ISSUED = { networkCardId: '', last4: '4242', expMonth: 12, expYear: 2030 };

describe('a change of a card whose creation is not over', () => {
  let commands: TestCommands;
  before(async () => {
    commands = await openCommands();
  });
  after(async () => {
    assert.deepEqual(await checkLedger(commands.context.orm.em.fork()), []);
    await commands.close();
  });

  /** A pending live card, whose request has no response yet. */
  async function pendingCard() {
    const partnerId = await commands.createFundedPartner(100_000);
    const request = { amount: 1_000, external_ref: randomUUID(), metadata: { order: '1' } };
    const claim = await commands.claimCard({ partnerId, mode: 'live', request });
    assert.ok(claim.outcome === 'claimed');
    const { claimId, resourceId: cardId } = claim;
    assert.equal((await beginIssuance(commands.context, claimId)).state, 'held');
    return { partnerId, claimId, cardId };
  }

  function update({ partnerId, cardId }: { partnerId: string; cardId: string }, body: object, key?: string) {
    const keyed = keyedRequest('update_card', cardId, body, { partnerId, mode: 'live', ...(key && { key }) });
    return updateCard(commands.context, { ...keyed, cardId }, body);
  }

  const events = async (cardId: string) => {
    const { rows } = await commands.owner.query<{ type: string; body: string }>(
      'SELECT type, body FROM event WHERE card_id = $1 ORDER BY id',
      [cardId],
    );
    return rows.map(({ type, body }) => [type, JSON.parse(body).data.card.card_name]);
  };
  const issued = (cardId: string) => ({ ...ISSUED, networkCardId: `network-${cardId}` });

  it('leaves no event behind if the creation is refused afterwards, and its response can still be replayed', async () => {
    const card = await pendingCard();
    const first = await update(card, { card_name: 'A' }, 'k');
    assert.equal(first.response.status, 200);
    const refused = await failIssuance(commands.context, card.claimId, 'provider_declined');
    assert.equal(refused?.status, 402);
    assert.deepEqual(await events(card.cardId), []);
    const { rows } = await commands.owner.query('SELECT FROM card WHERE id = $1', [card.cardId]);
    assert.equal(rows.length, 0);
    const replayed = await update(card, { card_name: 'A' }, 'k');
    assert.deepEqual([replayed.replayed, replayed.response], [true, first.response]);
    await assert.rejects(update(card, { card_name: 'B' }), (error) => {
      return error instanceof ApiError && error.code === 'card_not_found';
    });
  });

  for (const operation of ['freeze_card', 'unfreeze_card', 'block_card'] as const)
    it(`is refused if it is ${operation} and the creation is refused first`, () =>
      refusedAfter(operation, (claimId) => beginStatusChange(commands.context, claimId)));
  for (const [direction, { operation }] of Object.entries(TRANSFERS))
    it(`is refused if it is ${operation} and the creation is refused first`, () =>
      refusedAfter(operation, (claimId) =>
        beginTransfer(commands.context, claimId, direction as TransferDirection),
      ));

  async function refusedAfter(
    operation: ClaimOperation,
    begin: (claimId: string) => ReturnType<typeof beginStatusChange | typeof beginTransfer>,
  ): Promise<void> {
    const card = await pendingCard();
    const claimId = await commands.claimOf(operation, { ...card, mode: 'live' }, { amount: 500 });
    await failIssuance(commands.context, card.claimId, 'provider_declined');
    const begun = await begin(claimId);
    assert.ok(begun.state === 'answered');
    assert.equal(begun.response?.status, 409);
    assert.match(begun.response?.body ?? '', /"invalid_state".*The card was never issued/);
    assert.deepEqual(await begin(claimId), { state: 'answered', response: null });
    assert.deepEqual(await readClaimResponse(commands.context, claimId), begun.response);
  }

  it('is told of by one event when the creation is accepted, with the last of several changes', async () => {
    const card = await pendingCard();
    await update(card, { card_name: 'A' });
    await update(card, { card_name: 'B', metadata: { order: '2' } });
    assert.deepEqual(await events(card.cardId), []);
    const accepted = await acceptIssuance(commands.context, card.claimId);
    assert.deepEqual(JSON.parse(accepted?.body ?? '').card_name, 'B');
    assert.deepEqual(await events(card.cardId), [['card.updated', 'B']]);
    await update(card, { card_name: 'C' });
    assert.deepEqual(await events(card.cardId), [
      ['card.updated', 'B'],
      ['card.updated', 'C'],
    ]);
    assert.equal(await acceptIssuance(commands.context, card.claimId), null);
    await failIssuance(commands.context, card.claimId, 'issuance_failed');
    assert.deepEqual(await events(card.cardId), [
      ['card.updated', 'B'],
      ['card.updated', 'C'],
      ['card.issue_failed', 'C'],
    ]);
  });

  it('is told of before the card is issued, if the creation succeeds at once', async () => {
    const card = await pendingCard();
    await update(card, { card_name: 'A' });
    const created = await completeIssuance(commands.context, card.claimId, issued(card.cardId));
    const resource = JSON.parse(created?.body ?? '');
    assert.deepEqual([created?.status, resource.status, resource.card_name], [201, 'active', 'A']);
    assert.deepEqual(resource.metadata, { order: '1' });
    assert.deepEqual(await events(card.cardId), [
      ['card.updated', 'A'],
      ['card.issued', 'A'],
    ]);
  });

  it('is not lost whichever of them comes first, and no event shows a value from before it', async () => {
    for (let round = 0; round < 20; round++) {
      const card = await pendingCard();
      const accepts = round % 2 === 0;
      await Promise.all([
        update(card, { card_name: 'A' }),
        accepts
          ? acceptIssuance(commands.context, card.claimId)
          : completeIssuance(commands.context, card.claimId, issued(card.cardId)),
      ]);
      if (accepts) await completeIssuance(commands.context, card.claimId, issued(card.cardId));
      const written = await events(card.cardId);
      assert.deepEqual(written.map(([type]) => type).toSorted(), ['card.issued', 'card.updated']);
      assert.deepEqual(written.find(([type]) => type === 'card.updated')?.[1], 'A');
      const [last] = written.slice(-1);
      assert.equal(last?.[1], 'A');
      const { rows } = await commands.owner.query(
        'SELECT card_name, update_unannounced FROM card WHERE id = $1',
        [card.cardId],
      );
      assert.deepEqual(rows, [{ card_name: 'A', update_unannounced: false }]);
    }
  });
});
