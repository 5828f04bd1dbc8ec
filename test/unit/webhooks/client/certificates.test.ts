import assert from 'node:assert/strict';
import { HOST, PUBLIC } from '../../../support/adapters/webhooks/clients.ts';
import { startReceiver } from '../../../support/adapters/webhooks/receivers.ts';
import { createTrust, postOverTls, serving, type Trust } from '../../../support/adapters/webhooks/tls.ts';

const INVALID = 'certificate_invalid';
const MISMATCH = 'certificate_host_mismatch';

describe('a certificate', () => {
  let trust: Trust;

  before(() => {
    trust = createTrust();
  });

  it('is accepted if it is for *.partner.example', async () => {
    const wildcard = trust.authority.issue({ hosts: ['*.partner.example'] });
    assert.deepEqual(await postOverTls(trust, serving(wildcard)), [['delivered', null]]);
  });

  for (const [what, error, certificate] of [
    ['is from an authority that is not trusted', INVALID, () => trust.stranger.issue({ hosts: [HOST] })],
    ['signed itself', INVALID, () => ({ cert: trust.stranger.ca, key: trust.stranger.key })],
    ['has expired', INVALID, () => trust.authority.issue({ hosts: [HOST], fromDays: -3, toDays: -2 })],
    ['is not valid yet', INVALID, () => trust.authority.issue({ hosts: [HOST], fromDays: 2, toDays: 3 })],
    ['is for another host', MISMATCH, () => trust.authority.issue({ hosts: ['other.example'] })],
    ['is for the parent domain', MISMATCH, () => trust.authority.issue({ hosts: ['partner.example'] })],
    ['is for the address', MISMATCH, () => trust.authority.issue({ hosts: [PUBLIC, '127.0.0.1'] })],
  ] as const) {
    for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
      it(`is refused at every attempt over ${maxVersion} if it ${what}`, async () => {
        let requests = 0;
        const receiver = startReceiver(
          () => {
            requests += 1;
          },
          { ...certificate(), maxVersion },
        );
        // Again, because a session that was resumed would not be checked for the name.
        assert.deepEqual(await postOverTls(trust, receiver, { times: 3 }), Array(3).fill(['failed', error]));
        assert.equal(requests, 0);
      });
    }
  }

  it('is accepted for a URL with an address only if it is for that address', async () => {
    const url = 'https://8.8.8.8/';
    // Where `leadTo` leads it.
    const own = trust.authority.issue({ hosts: ['127.0.0.1'] });
    assert.deepEqual(await postOverTls(trust, serving(own), { url }), [['delivered', null]]);
    assert.deepEqual(await postOverTls(trust, serving(trust.good), { url }), [['failed', MISMATCH]]);
  });

  it('is checked even if the environment turns checks off', async () => {
    const before = process.env.NODE_TLS_REJECT_UNAUTHORIZED;
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
    try {
      const receiver = serving(trust.stranger.issue({ hosts: [HOST] }));
      assert.deepEqual(await postOverTls(trust, receiver), [['failed', INVALID]]);
    } finally {
      if (before === undefined) delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
      else process.env.NODE_TLS_REJECT_UNAUTHORIZED = before;
    }
  });
});
