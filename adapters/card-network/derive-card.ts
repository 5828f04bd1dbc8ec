import { createHmac, type KeyObject } from 'node:crypto';
import { decodeTime } from 'ulid';
import type { RevealedCard } from './card-network.ts';
import { luhnCheckDigit } from './luhn.ts';

const NUMBER_DIGITS = 16;
const SHORTEST_LIFE_MONTHS = 36;

/** What may be kept of a derived card. */
export interface DerivedCard {
  networkCardId: string;
  last4: string;
  expMonth: number;
  expYear: number;
}

/**
 * The card a simulated network issues for a token: always the same for the same key, token and prefix, so nothing of
 * it that is secret has to be kept. The key must stay the same for the cards' lives.
 * @param key 32 bytes
 * @param token a card id; its time of birth counts the life of the card, 36 to 59 months
 */
export function deriveCard(key: KeyObject, token: string, prefix: string): DerivedCard {
  const lifeMonths = SHORTEST_LIFE_MONTHS + Number(derive(key, 'expiry', token) % 24n);
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
 * The secret side of the same card; its number is 16 digits, `prefix` first and the Luhn digit last. Only a reveal may
 * hand it on: it is never logged, stored or part of another answer.
 * @param prefix 4 to 12 digits
 */
export function deriveRevealedCard(key: KeyObject, token: string, prefix: string): RevealedCard {
  const { expMonth, expYear } = deriveCard(key, token, prefix);
  const cvv = (derive(key, 'cvv', token) % 1_000n).toString().padStart(3, '0');
  return { pan: deriveNumber(key, token, prefix), cvv, expMonth, expYear };
}

function deriveNumber(key: KeyObject, token: string, prefix: string): string {
  const free = NUMBER_DIGITS - 1 - prefix.length;
  const digits = derive(key, `number ${prefix}`, token) % 10n ** BigInt(free);
  const body = prefix + digits.toString().padStart(free, '0');
  return body + luhnCheckDigit(body);
}

function derive(key: KeyObject, purpose: string, token: string): bigint {
  if (key.symmetricKeySize !== 32) throw new Error('the key that cards are derived from must have 32 bytes');
  const digest = createHmac('sha256', key).update(`${purpose}\n${token}`).digest('hex');
  return BigInt(`0x${digest.slice(0, 32)}`);
}
