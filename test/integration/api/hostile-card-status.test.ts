import { newId } from '../../../crypto/new-id.ts';
import { expectError } from '../../support/api/answers.ts';
import { rawRequest, sendRaw } from '../../support/api/raw-request.ts';
import { untouchedStack } from '../../support/api/untouched-stack.ts';
import { changeStatus, VERBS } from '../../support/card-status.ts';

const NO_IDS = [
  ...['x', 'card_', 'card_1', 'CARD_00000000000000000000000000', 'topup_00000000000000000000000000'],
  ...[
    'card_0000000000000000000000000',
    'card_000000000000000000000000000',
    'card_0000000000000000000000000i',
  ],
  ...['card_0000000000000000000000000%00', "card_'%20OR%20'1'='1", '%F0%9F%92%A5', '..%2Fcards', '%2e%2e'],
];

describe('POST /cards/{cardId}/freeze, unfreeze and block', () => {
  const running = untouchedStack();
  const cardId = newId('card');

  for (const verb of VERBS) {
    const path = `/cards/${cardId}/${verb}`;
    const send = (body: string, contentType = 'application/json') =>
      running.partner.call('POST', path, { body, headers: { 'content-type': contentType } });

    it(`answers 404 for ${verb} of anything that is not a card, before anything is written`, async () => {
      for (const id of [cardId, ...NO_IDS]) {
        for (const mode of ['test', 'live'] as const) {
          const answer = await changeStatus(running.partner, id, verb, { mode, idempotencyKey: 'k' });
          expectError(answer, answer.json.error.code === 'not_found' ? 'not_found' : 'card_not_found');
        }
      }
    });

    it(`accepts ${verb} with no body, an empty one of any type, and {}`, async () => {
      expectError(await running.partner.call('POST', path), 'card_not_found');
      for (const type of ['application/json', 'application/x-www-form-urlencoded', 'text/plain', 'x']) {
        expectError(await send('', type), 'card_not_found');
      }
      for (const body of ['{}', ' {\n} ']) expectError(await send(body), 'card_not_found');
      const chunked = await sendRaw(
        running.stack,
        `POST /v1${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${running.partner.keys.test}\r\n`,
        'Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      );
      expectError(chunked, 'card_not_found');
    });

    it(`answers 400 for ${verb} with any other body`, async () => {
      expectError(await send('{"reason":"lost","x":1}'), 'validation_failed', ['reason', 'x']);
      expectError(await send('{"__proto__":{}}'), 'validation_failed', ['__proto__']);
      for (const body of [
        '[]',
        '[{}]',
        'null',
        'true',
        '0',
        '""',
        ' ',
        '{',
        '{}{}',
        '\ufeff{}',
        '{"a":1,"a":1}',
      ]) {
        expectError(await send(body), 'validation_failed', ['body']);
      }
    });

    it(`answers 415 for ${verb} with a body of another type, and 413 for one that is too large`, async () => {
      for (const type of [
        'text/plain',
        'application/x-www-form-urlencoded',
        'application/json; charset=utf-16',
      ]) {
        expectError(await send('{}', type), 'unsupported_media_type');
      }
      const encoded = { 'content-type': 'application/json', 'content-encoding': 'gzip' };
      expectError(
        await running.partner.call('POST', path, { body: '{}', headers: encoded }),
        'unsupported_media_type',
      );
      expectError(await send(' '.repeat(65_537)), 'body_too_large');
    });

    it(`answers 400 for ${verb} with a query, or with an invalid Idempotency-Key`, async () => {
      expectError(await running.partner.call('POST', `${path}?force=1`), 'validation_failed', ['force']);
      for (const key of ['x'.repeat(256), 'a\tb', 'a\xa0b']) {
        const answer = await changeStatus(running.partner, cardId, verb, { idempotencyKey: key });
        expectError(answer, 'idempotency_key_invalid', ['Idempotency-Key']);
      }
      const headers = [
        ['Authorization', `Bearer ${running.partner.keys.test}`],
        ['Idempotency-Key', 'k'],
        ['Idempotency-Key', 'k'],
      ] as const;
      expectError(await rawRequest(running.stack, 'POST', `/v1${path}`, headers), 'idempotency_key_invalid', [
        'Idempotency-Key',
      ]);
    });

    it(`answers 405 for other methods than POST on ${verb}`, async () => {
      for (const method of ['GET', 'PUT', 'PATCH', 'DELETE']) {
        expectError(await running.partner.call(method, path), 'method_not_allowed');
      }
    });
  }
});
