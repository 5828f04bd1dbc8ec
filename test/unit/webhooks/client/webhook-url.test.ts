import assert from 'node:assert/strict';
import { parseWebhookUrl } from '../../../../webhooks/client/webhook-url.ts';

const parse = (url: string) => parseWebhookUrl(url, { allowLoopbackHttp: false });
const parseLocally = (url: string) => parseWebhookUrl(url, { allowLoopbackHttp: true });

describe('parseWebhookUrl', () => {
  it('splits a public https URL into its parts', () => {
    assert.deepEqual(parse('https://Hooks.Partner.example:8443/a/../in?token=1&x=%20'), {
      href: 'https://hooks.partner.example:8443/in?token=1&x=%20',
      origin: 'https://hooks.partner.example:8443',
      path: '/in?token=1&x=%20',
      secure: true,
      port: 8443,
      host: 'hooks.partner.example',
      addresses: null,
    });
  });

  for (const [url, host, port, addresses] of [
    ['https://partner.example', 'partner.example', 443, null],
    ['HTTPS://partner.example:443/', 'partner.example', 443, null],
    ['https://partner.example:1024/', 'partner.example', 1024, null],
    ['https://partner.example:65535/', 'partner.example', 65_535, null],
    ['https://under_score.partner.example/', 'under_score.partner.example', 443, null],
    ['https://bücher.example/', 'xn--bcher-kva.example', 443, null],
    ['https://8.8.8.8/hook', '8.8.8.8', 443, ['8.8.8.8']],
    ['https://[2606:4700:4700::1111]:8443/', '2606:4700:4700::1111', 8443, ['2606:4700:4700::1111']],
  ] as const) {
    it(`accepts ${url}`, () => {
      const target = parse(url);
      assert.ok(!('problem' in target));
      assert.deepEqual([target.host, target.port, target.addresses], [host, port, addresses]);
    });
  }

  it('accepts http to this machine where that is allowed, and needs no look-up for its addresses', () => {
    for (const [url, addresses] of [
      ['http://127.0.0.1:3000/', ['127.0.0.1']],
      ['http://127.8.9.10:3000/', ['127.8.9.10']],
      ['http://[::1]:3000/', ['::1']],
      ['http://localhost:3000/', ['127.0.0.1', '::1']],
    ] as const) {
      const target = parseLocally(url);
      assert.ok(!('problem' in target), url);
      assert.deepEqual([target.addresses, target.secure], [addresses, false]);
      assert.deepEqual(parse(url), { problem: 'url_scheme_not_allowed' });
    }
  });

  it('accepts nothing else where http to this machine is allowed', () => {
    for (const [url, problem] of [
      ['https://127.0.0.1:3000/', 'address_not_allowed'],
      ['https://localhost:3000/', 'url_host_not_allowed'],
      ['http://partner.example:3000/', 'url_scheme_not_allowed'],
      ['http://10.0.0.1:3000/', 'url_scheme_not_allowed'],
      ['http://[::ffff:127.0.0.1]:3000/', 'url_scheme_not_allowed'],
      ['http://foo.localhost:3000/', 'url_scheme_not_allowed'],
      ['http://localhost.:3000/', 'url_scheme_not_allowed'],
      ['http://127.0.0.1/', 'url_port_not_allowed'],
    ] as const) {
      assert.deepEqual(parseLocally(url), { problem }, url);
    }
  });

  it('accepts 2,048 characters and no more, as it is stored and used', () => {
    for (const path of ['a'.repeat(2_024), `${'é'.repeat(337)}aa`]) {
      const url = `https://partner.example/${path}`;
      assert.ok(!('problem' in parse(url)));
      assert.deepEqual(parse(`${url}a`), { problem: 'url_invalid' });
    }
  });
});
