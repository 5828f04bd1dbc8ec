import assert from 'node:assert/strict';
import fc from 'fast-check';
import { encodeTime } from 'ulid';
import { deriveCardNumber } from '../../../adapters/card-network/derive-card.ts';
import {
  createTestModeNetwork,
  TEST_NUMBER_PREFIX,
} from '../../../adapters/card-network/test-mode-network.ts';
import { issuance } from '../support/issuance.ts';
import { passesLuhn } from '../support/luhn.ts';

const keys = fc.uint8Array({ minLength: 32, maxLength: 32 });
const births = fc.date({ min: new Date('2020-01-01'), max: new Date('2099-12-31'), noInvalidDate: true });
const tails = fc.stringMatching(/^[0-9a-hjkmnp-tv-z]{16}$/);
const tokenOf = (birth: Date, tail: string) => `card_${encodeTime(birth.getTime()).toLowerCase()}${tail}`;

describe('the network of mode test', () => {
  it('issues at once, always the same card for a token, whatever else is asked', async () => {
    await fc.assert(
      fc.asyncProperty(keys, births, tails, fc.integer({ min: 1 }), async (key, birth, tail, amountCents) => {
        const token = tokenOf(birth, tail);
        const first = await createTestModeNetwork({ key }).issueCard(issuance(0, { token }));
        const network = createTestModeNetwork({ key });
        const again = await network.issueCard(
          issuance(0, { token, amountCents, bin: '411111', productCode: 'other', cardholderName: null }),
        );
        assert.equal(first.status, 'issued');
        assert.deepEqual(again, first);
        assert.deepEqual(await network.lookUpIssuance(token), first);
      }),
    );
  });

  it('gives numbers that start with 4242, have 16 digits and pass Luhn, and says no more of them than the last four', async () => {
    await fc.assert(
      fc.asyncProperty(keys, births, tails, async (key, birth, tail) => {
        const token = tokenOf(birth, tail);
        const number = deriveCardNumber(key, token, TEST_NUMBER_PREFIX);
        assert.match(number, /^4242[0-9]{12}$/);
        assert.ok(passesLuhn(number));
        const answer = await createTestModeNetwork({ key }).issueCard(issuance(0, { token }));
        assert.ok(answer.status === 'issued');
        assert.equal(answer.last4, number.slice(-4));
        assert.equal(JSON.stringify(answer).includes(number.slice(0, 12)), false);
        assert.deepEqual(Object.keys(answer).sort(), [
          'expMonth',
          'expYear',
          'last4',
          'networkCardId',
          'status',
        ]);
      }),
    );
  });

  it('gives cards that live 36 to 59 months', async () => {
    await fc.assert(
      fc.asyncProperty(keys, births, tails, async (key, birth, tail) => {
        const network = createTestModeNetwork({ key });
        const answer = await network.issueCard(issuance(0, { token: tokenOf(birth, tail) }));
        assert.ok(answer.status === 'issued');
        assert.ok(answer.expMonth >= 1 && answer.expMonth <= 12);
        const months =
          (answer.expYear - birth.getUTCFullYear()) * 12 + answer.expMonth - (birth.getUTCMonth() + 1);
        assert.ok(months >= 36 && months <= 59, `${months} months`);
      }),
    );
  });

  it('gives every token, and every key, a card of its own', () => {
    const birth = new Date('2026-11-20');
    fc.assert(
      fc.property(
        fc.uniqueArray(tails, { minLength: 2, maxLength: 50 }),
        keys,
        keys,
        (ends, key, otherKey) => {
          fc.pre(!Buffer.from(key).equals(Buffer.from(otherKey)));
          const numbers = [key, otherKey].flatMap((each) =>
            ends.map((tail) => deriveCardNumber(each, tokenOf(birth, tail), TEST_NUMBER_PREFIX)),
          );
          assert.equal(new Set(numbers).size, numbers.length);
        },
      ),
    );
  });

  it('keeps the cards it gave: a fixed key and token give this one', async () => {
    const network = createTestModeNetwork({ key: new Uint8Array(32).fill(7) });
    assert.deepEqual(await network.lookUpIssuance('card_01kahqw5t0abcdefghjkmnpqrs'), {
      status: 'issued',
      networkCardId: 'sim_7a0fed03c73bd90009fb742c4e89ac94',
      last4: '4934',
      expMonth: 3,
      expYear: 2029,
    });
  });

  it('refuses a key of another size', async () => {
    const network = createTestModeNetwork({ key: new Uint8Array(16) });
    await assert.rejects(network.issueCard(issuance(0)), /32 bytes/);
  });
});
