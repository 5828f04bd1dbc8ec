import assert from 'node:assert/strict';
import { untouchedPartner } from '../support/api/accounts.ts';
import { expectError } from '../support/api/answers.ts';

const FIELDS = [
  ...['external_ref', 'product_code', 'card_name', 'cardholder_first_name', 'cardholder_last_name', 'email'],
];
const NO_CHARACTERS = [
  ...['\u0000', '\n', '\u007f', '\u0085', '\ud800', '\udc00', '\ud83d '],
  // Invisible, or turning the direction of what stands around it.
  ...['\u00ad', '\u061c', '\u200b', '\u200e', '\u2028', '\u202e', '\u2066', '\ufeff', '\ufff9'],
];
const NO_TEXTS = [
  ...['', '\u0000', 'x'.repeat(256), '\u{1f4a5}'.repeat(256), 1, true, [], {}, null, ['x']],
  ...NO_CHARACTERS.map((character) => `a${character}b`),
];

/** What each kind of text may be is in test/unit/domain/fields.test.ts. */
describe('POST /cards', () => {
  const running = untouchedPartner();

  const post = (fields: object) =>
    running.partner.call('POST', '/cards', {
      body: { amount: 1_000, external_ref: 'r', ...fields },
      idempotencyKey: 'k',
    });

  for (const field of FIELDS) {
    it(`answers 400 for a value of ${field} that no database, log or card could carry`, async () => {
      for (const value of NO_TEXTS) expectError(await post({ [field]: value }), 'validation_failed', [field]);
    });
  }

  it('answers 400 for an email that is not an address', async () => {
    for (const email of ['x', 'a b@c.de', `${'a'.repeat(250)}@b.de`, 'ä@b.de, c@d.ef'])
      expectError(await post({ email }), 'validation_failed', ['email']);
  });

  it('names up to 50 wrong fields', async () => {
    const unknown = Array.from({ length: 150 }, (_, index) => `f${index}`);
    const fields = Object.fromEntries(unknown.map((name) => [name, 1]));
    const answer = await post({ amount: '1', external_ref: undefined, email: 'x', ...fields });
    expectError(answer, 'validation_failed', ['amount', 'external_ref', 'email', ...unknown.slice(0, 47)]);
    assert.match(answer.json.error.message, /and 40 more/);
  });
});
