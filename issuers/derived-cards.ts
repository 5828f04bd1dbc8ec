import { createHmac, type KeyObject } from 'node:crypto';
import { decodeTime } from 'ulid';
import type { NetworkCard } from '../domain/card.ts';
import type { KeyRing } from '../platform/crypto/key-ring.ts';
import type { RevealedCard, RevealRequest } from './card-network.ts';

// Cards in test mode and on the simulated network are derived from a key and the card's id, so nothing secret
// about them has to be stored.

/**
 * Numbers with this prefix exist on no network, whatever the product's BIN (docs/partners/secure-details.md).
 */
const TEST_NUMBER_PREFIX = '4242';
const NUMBER_DIGITS = 16;
const MIN_LIFE_MONTHS = 36;

/** Its id is stored with the card, so rotating the ring changes no card. */
const testCardKey = (ring: KeyRing, keyId: string): KeyObject => ring.deriveFrom(keyId, 'test-cards');

/**
 * Issues test cards with the ring's current key. The card's network id contains that key's id, so that a
 * later reveal derives the same number even if the ring has been rotated.
 */
export function testCardIssuer(ring: KeyRing): (cardId: string) => Promise<NetworkCard> {
  const keyId = ring.primaryId;
  const key = testCardKey(ring, keyId);
  return async (cardId) => {
    const card = deriveCard(key, cardId, TEST_NUMBER_PREFIX);
    return { ...card, networkCardId: `${keyId}/${card.networkCardId}` };
  };
}

/**
 * Derives the details of cards that {@link testCardIssuer} issued.
 * @returns a function that throws if the card's key is not in the ring
 */
export function testCardRevealer(ring: KeyRing): (card: RevealRequest) => Promise<RevealedCard> {
  return async ({ cardId, networkCardId }) => {
    const keyId = networkCardId.slice(0, networkCardId.lastIndexOf('/'));
    return deriveRevealedCard(testCardKey(ring, keyId), cardId, TEST_NUMBER_PREFIX);
  };
}

/**
 * Derives the card for a token. The same key, token and prefix always give the same card, so a key must not
 * change while its cards exist.
 * @param key 32 bytes
 * @param token a card id; the card expires 36 to 59 months after the time in it
 */
export function deriveCard(key: KeyObject, token: string, prefix: string): NetworkCard {
  const lifeMonths = MIN_LIFE_MONTHS + Number(derive(key, 'expiry', token) % 24n);
  const expiry = new Date(decodeTime(token.slice(token.indexOf('_') + 1)));
  expiry.setUTCMonth(expiry.getUTCMonth() + lifeMonths, 1);
  return {
    networkCardId: `sim_${derive(key, 'network card id', token).toString(16).padStart(32, '0')}`,
    last4: deriveNumber(key, token, prefix).slice(-4),
    expMonth: expiry.getUTCMonth() + 1,
    expYear: expiry.getUTCFullYear(),
  };
}

/**
 * Derives the secret details of the same card. They are for reveals only: never log or store them, or return
 * them elsewhere.
 * @param prefix what the number starts with, 4 to 12 digits
 */
export function deriveRevealedCard(key: KeyObject, token: string, prefix: string): RevealedCard {
  const { expMonth, expYear } = deriveCard(key, token, prefix);
  const cvv = (derive(key, 'cvv', token) % 1_000n).toString().padStart(3, '0');
  return { pan: deriveNumber(key, token, prefix), cvv, expMonth, expYear };
}

/** The digit that makes `digits` followed by it pass the Luhn check (ISO/IEC 7812-1, annex B). */
export function luhnCheckDigit(digits: string): string {
  let sum = 0;
  for (let fromRight = 1; fromRight <= digits.length; fromRight++) {
    const digit = Number(digits[digits.length - fromRight]);
    const weighted = fromRight % 2 === 1 ? digit * 2 : digit;
    sum += weighted > 9 ? weighted - 9 : weighted;
  }
  return String((10 - (sum % 10)) % 10);
}

function deriveNumber(key: KeyObject, token: string, prefix: string): string {
  const freeDigits = NUMBER_DIGITS - 1 - prefix.length;
  const account = derive(key, `number ${prefix}`, token) % 10n ** BigInt(freeDigits);
  const body = prefix + account.toString().padStart(freeDigits, '0');
  return body + luhnCheckDigit(body);
}

function derive(key: KeyObject, purpose: string, token: string): bigint {
  if (key.symmetricKeySize !== 32) throw new Error('the key that cards are derived from must have 32 bytes');
  const digest = createHmac('sha256', key).update(`${purpose}\n${token}`).digest('hex');
  return BigInt(`0x${digest.slice(0, 32)}`);
}
