import assert from 'node:assert/strict';
import { HOST, PUBLIC } from '../../../support/adapters/webhooks/clients.ts';
import { startReceiver } from '../../../support/adapters/webhooks/receivers.ts';
import { createTrust, postOverTls, serving, type Trust } from '../../../support/adapters/webhooks/tls.ts';

describe('a certificate', () => {
  let trust: Trust;

  before(() => {
    trust = createTrust();
  });

  it('is accepted if it is for *.partner.example', async () => {
    const wildcard = trust.authority.issue({ hosts: ['*.partner.example'] });
    assert.deepEqual(await postOverTls(trust, serving(wildcard)), [['delivered', null]]);
  });

  for (const [what, certificate, error] of [
    [
      'is from an authority that is not trusted',
      () => trust.stranger.issue({ hosts: [HOST] }),
      'certificate_invalid',
    ],
    ['signed itself', () => ({ cert: trust.stranger.ca, key: trust.stranger.key }), 'certificate_invalid'],
    [
      'has expired',
      () => trust.authority.issue({ hosts: [HOST], fromDays: -3, toDays: -2 }),
      'certificate_invalid',
    ],
    [
      'is not valid yet',
      () => trust.authority.issue({ hosts: [HOST], fromDays: 2, toDays: 3 }),
      'certificate_invalid',
    ],
    [
      'is for another host',
      () => trust.authority.issue({ hosts: ['other.example'] }),
      'certificate_host_mismatch',
    ],
    [
      'is for the parent domain',
      () => trust.authority.issue({ hosts: ['partner.example'] }),
      'certificate_host_mismatch',
    ],
    [
      'is for the address',
      () => trust.authority.issue({ hosts: [PUBLIC, '127.0.0.1'] }),
      'certificate_host_mismatch',
    ],
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
    assert.deepEqual(await postOverTls(trust, serving(trust.good), { url }), [
      ['failed', 'certificate_host_mismatch'],
    ]);
  });

  it('is checked even if the environment turns checks off', async () => {
    const before = process.env.NODE_TLS_REJECT_UNAUTHORIZED;
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
    try {
      const receiver = serving(trust.stranger.issue({ hosts: [HOST] }));
      assert.deepEqual(await postOverTls(trust, receiver), [['failed', 'certificate_invalid']]);
    } finally {
      if (before === undefined) delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
      else process.env.NODE_TLS_REJECT_UNAUTHORIZED = before;
    }
  });
});
