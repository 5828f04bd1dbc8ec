import assert from 'node:assert/strict';
import { untouchedPartner } from '../support/api/accounts.ts';
import { expectError } from '../support/api/answers.ts';

describe('POST /cards', () => {
  const running = untouchedPartner();

  const post = (body: string) => running.partner.call('POST', '/cards', { body, idempotencyKey: 'k' });

  const FIELDS = [
    'external_ref',
    'product_code',
    'card_name',
    'cardholder_first_name',
    'cardholder_last_name',
    'email',
  ];
  for (const field of FIELDS) {
    it(`answers 400 for a value of ${field} that no database, log or card could carry`, async () => {
      for (const text of [
        ...[
          '',
          'a\u0000b',
          '\u0000',
          'a\nb',
          'a\u007fb',
          'a\u0085b',
          '\ud800',
          'a\udc00',
          '\ud83d x',
          'x'.repeat(256),
          '\u{1f4a5}'.repeat(256),
        ],
        // Invisible, or turning the direction of what stands around it.
        ...[
          '\u00ad',
          '\u061c',
          '\u180e',
          '\u200b',
          '\u200e',
          '\u200f',
          '\u2028',
          '\u2029',
          '\u202a',
          '\u202e',
        ]
          .concat(['\u2060', '\u2066', '\u2069', '\ufeff', '\ufff9'])
          .map((unseen) => `a${unseen}b`),
      ]) {
        const body = { amount: 1_000, external_ref: 'r', [field]: text };
        expectError(await post(JSON.stringify(body)), 'validation_failed', [field]);
      }
      for (const value of ['1', 'true', '[]', '{}', 'null', '["x"]']) {
        const body = JSON.stringify({ amount: 1_000, external_ref: 'r', [field]: 0 }).replace(
          /0}$/,
          `${value}}`,
        );
        const renamed = field === 'external_ref' ? `{"amount":1000,"external_ref":${value}}` : body;
        expectError(await post(renamed), 'validation_failed', [field]);
      }
    });
  }

  it('answers 400 for an email that is not an address', async () => {
    for (const email of [
      'x',
      '@',
      '"a"@b.de',
      'a b@c.de',
      'a@b..de',
      'a@b.de\u0000',
      `${'a'.repeat(250)}@b.de`,
      'ä@b.de, c@d.ef',
    ]) {
      const body = JSON.stringify({ amount: 1_000, external_ref: 'r', email });
      expectError(await post(body), 'validation_failed', ['email']);
    }
  });

  it('names up to 50 wrong fields', async () => {
    const unknown = Array.from({ length: 150 }, (_, index) => `f${index}`);
    const body = { amount: '1', email: 'x', ...Object.fromEntries(unknown.map((name) => [name, 1])) };
    const answer = await post(JSON.stringify(body));
    expectError(answer, 'validation_failed', ['amount', 'external_ref', 'email', ...unknown.slice(0, 47)]);
    assert.match(answer.json.error.message, /and 40 more/);
  });
});
