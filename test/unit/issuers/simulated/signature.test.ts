import assert from 'node:assert/strict';
import fc from 'fast-check';
import { signBody, verifySignature } from '../../../../issuers/simulated/signature.ts';

describe("a callback's signature", () => {
  it('is the hex HMAC-SHA256 of the body (RFC 4231, test case 2)', () => {
    assert.equal(
      signBody('what do ya want for nothing?', 'Jefe'),
      '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
    );
  });

  it('is valid for the signed bytes and their secret', () => {
    fc.assert(
      fc.property(fc.uint8Array(), fc.string({ minLength: 1 }), (body, secret) => {
        assert.equal(verifySignature(body, signBody(body, secret), secret), true);
      }),
    );
  });

  it('is invalid for any other body, secret or signature', () => {
    const signature = signBody('{"token":"a"}', 'secret');
    assert.equal(verifySignature('{"token":"b"}', signature, 'secret'), false);
    assert.equal(verifySignature('{"token":"a"}', signature, 'another'), false);
    for (const wrong of [undefined, '', 'é', signature.slice(1), `${signature}0`, signature.toUpperCase()]) {
      assert.equal(verifySignature('{"token":"a"}', wrong, 'secret'), false);
    }
  });
});
