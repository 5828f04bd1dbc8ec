import assert from 'node:assert/strict';
import { createSecretKey, randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { encodeTime } from 'ulid';
import {
  deriveCard,
  deriveRevealedCard,
  luhnCheckDigit,
  testCardIssuer,
  testCardRevealer,
} from '../../../issuers/derived-cards.ts';
import { KeyRing } from '../../../platform/crypto/key-ring.ts';
import { passesLuhn } from '../../support/adapters/luhn.ts';
import { newToken } from '../../support/adapters/network-requests.ts';

const SEVENS = createSecretKey(new Uint8Array(32).fill(7));
const keys = fc.uint8Array({ minLength: 32, maxLength: 32 }).map(createSecretKey);
const births = fc.date({ min: new Date('2020-01-01'), max: new Date('2099-12-31'), noInvalidDate: true });
const tails = fc.stringMatching(/^[0-9a-hjkmnp-tv-z]{16}$/);
const prefixes = fc.stringMatching(/^[0-9]{4,12}$/);
const tokenOf = (birth: Date, tail: string) => `card_${encodeTime(birth.getTime()).toLowerCase()}${tail}`;

describe('a derived card', () => {
  it('has a 16-digit number that starts with the prefix and passes the Luhn check, and shows only its last four digits', () => {
    fc.assert(
      fc.property(keys, births, tails, prefixes, (key, birth, tail, prefix) => {
        const token = tokenOf(birth, tail);
        const { pan, cvv, expMonth, expYear } = deriveRevealedCard(key, token, prefix);
        assert.match(pan, /^[0-9]{16}$/);
        assert.ok(pan.startsWith(prefix));
        assert.ok(passesLuhn(pan));
        assert.match(cvv, /^[0-9]{3}$/);
        const { networkCardId, ...rest } = deriveCard(key, token, prefix);
        assert.deepEqual(rest, { last4: pan.slice(-4), expMonth, expYear });
        assert.match(networkCardId, /^sim_[0-9a-f]{32}$/);
      }),
    );
  });

  it('expires 36 to 59 months after it was made', () => {
    fc.assert(
      fc.property(keys, births, tails, (key, birth, tail) => {
        const { expMonth, expYear } = deriveCard(key, tokenOf(birth, tail), '4242');
        assert.ok(expMonth >= 1 && expMonth <= 12);
        const months = (expYear - birth.getUTCFullYear()) * 12 + expMonth - (birth.getUTCMonth() + 1);
        assert.ok(months >= 36 && months <= 59, `${months} months`);
      }),
    );
  });

  it('has a different number for every token and every key', () => {
    const birth = new Date('2026-11-20');
    fc.assert(
      fc.property(
        fc.uniqueArray(tails, { minLength: 2, maxLength: 50 }),
        keys,
        keys,
        (ends, key, otherKey) => {
          fc.pre(!key.equals(otherKey));
          const numbers = [key, otherKey].flatMap((each) =>
            ends.map((tail) => deriveRevealedCard(each, tokenOf(birth, tail), '4242').pan),
          );
          assert.equal(new Set(numbers).size, numbers.length);
        },
      ),
    );
  });

  it('has a CVV that cannot be guessed from its number and takes any of the 1,000 values', () => {
    const cvvs = Array.from({ length: 20_000 }, (_, index) => {
      const tail = index.toString().padStart(16, '0');
      return deriveRevealedCard(SEVENS, tokenOf(new Date('2026-11-20'), tail), '4242').cvv;
    });
    assert.equal(new Set(cvvs).size, 1_000);
  });

  it('does not change between releases: a known key and token give a known card', () => {
    const token = 'card_01kahqw5t0abcdefghjkmnpqrs';
    assert.deepEqual(deriveCard(SEVENS, token, '4242'), {
      networkCardId: 'sim_7a0fed03c73bd90009fb742c4e89ac94',
      last4: '4934',
      expMonth: 3,
      expYear: 2029,
    });
    const { pan, cvv } = deriveRevealedCard(SEVENS, token, '4242');
    assert.deepEqual([pan, cvv], ['4242010142194934', '199']);
  });

  it('needs a 32-byte key', () => {
    const token = tokenOf(new Date('2026-11-20'), '0000000000000000');
    assert.throws(() => deriveCard(createSecretKey(new Uint8Array(16)), token, '4242'), /32 bytes/);
  });
});

describe('luhnCheckDigit', () => {
  it('gives the last digit of well-known card numbers', () => {
    for (const number of ['4111111111111111', '5555555555554444', '378282246310005', '79927398713', '00']) {
      assert.equal(luhnCheckDigit(number.slice(0, -1)), number.slice(-1));
    }
  });
});

describe('test cards', () => {
  const first = { id: 'with/slash', secret: randomBytes(32) };
  const second = { id: 'k2', secret: randomBytes(32) };

  it('reveal the details they were issued with, before and after the key ring is rotated', async () => {
    const cardId = newToken();
    const issued = await testCardIssuer(new KeyRing([first]))(cardId);
    const card = { cardId, networkCardId: issued.networkCardId ?? '' };
    const revealed = await testCardRevealer(new KeyRing([first]))(card);
    assert.match(revealed.pan, /^4242[0-9]{12}$/);
    assert.equal(revealed.pan.slice(-4), issued.last4);
    assert.deepEqual([revealed.expMonth, revealed.expYear], [issued.expMonth, issued.expYear]);
    assert.deepEqual(await testCardRevealer(new KeyRing([second, first]))(card), revealed);
  });

  it('cannot be revealed without their key', async () => {
    const cardId = newToken();
    const { networkCardId } = await testCardIssuer(new KeyRing([first]))(cardId);
    await assert.rejects(
      testCardRevealer(new KeyRing([second]))({ cardId, networkCardId: networkCardId ?? '' }),
      /no key "with\/slash": add it back/,
    );
  });
});
