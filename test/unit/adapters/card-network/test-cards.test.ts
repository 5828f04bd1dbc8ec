import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { testCardIssuer, testCardRevealer } from '../../../../adapters/card-network/derived-cards.ts';
import { KeyRing } from '../../../../crypto/key-ring.ts';
import { newToken } from '../../../support/adapters/network-requests.ts';

describe('test cards', () => {
  const first = { id: 'with/slash', secret: randomBytes(32) };
  const second = { id: 'k2', secret: randomBytes(32) };

  it('reveal what they were issued with, before and after the ring is rotated', async () => {
    const cardId = newToken();
    const issued = await testCardIssuer(new KeyRing([first]))(cardId);
    const card = { cardId, networkCardId: issued.networkCardId ?? '' };
    const revealed = await testCardRevealer(new KeyRing([first]))(card);
    assert.match(revealed.pan, /^4242[0-9]{12}$/);
    assert.equal(revealed.pan.slice(-4), issued.last4);
    assert.deepEqual([revealed.expMonth, revealed.expYear], [issued.expMonth, issued.expYear]);
    assert.deepEqual(await testCardRevealer(new KeyRing([second, first]))(card), revealed);
  });

  it('can not be revealed without their key', async () => {
    const cardId = newToken();
    const { networkCardId } = await testCardIssuer(new KeyRing([first]))(cardId);
    await assert.rejects(
      testCardRevealer(new KeyRing([second]))({ cardId, networkCardId: networkCardId ?? '' }),
      /no key "with\/slash": add it back/,
    );
  });
});
